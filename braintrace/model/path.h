// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a state lives in the module tree: attribute names and list positions from the
// root.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace braintrace {

using PathKey = std::variant<std::int64_t, std::string>;  // integers sort before names

struct Path {
  std::vector<PathKey> keys;

  Path() = default;
  Path(std::initializer_list<PathKey> k) : keys(k) {}
  Path child(PathKey key) const;
  bool empty() const { return keys.empty(); }

  friend auto operator<=>(const Path&, const Path&) = default;
};

std::string to_string(const Path& p);      // "('rnn', 0, 'h')", "('h',)"
std::string to_slashes(const Path& p);     // "rnn/0/h"
Path path_from_slashes(std::string_view);  // digits become integers

}  // namespace braintrace
