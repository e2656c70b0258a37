// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where in the user's code a node was written. Kept for messages; never part of equality.
#include <cstdint>
#include <source_location>
#include <string>

namespace braintrace {

struct SourceLoc {
  const char* file = nullptr;  // static storage; null or empty = unknown
  std::uint32_t line = 0;

  SourceLoc() = default;
  SourceLoc(const char* f, std::uint32_t l) : file(f), line(l) {}
  SourceLoc(const std::source_location& l) : file(l.file_name()), line(l.line()) {}
  explicit operator bool() const { return file != nullptr && *file != '\0'; }
};

std::string to_string(const SourceLoc& l);  // "model.cpp:12", "" when unknown

}  // namespace braintrace
