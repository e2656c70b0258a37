// SPDX-License-Identifier: Apache-2.0
#include "braintrace/base/memory_plan.h"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {{
    {"", 1},
    {"b", 1},
    {"kb", 1e3},
    {"mb", 1e6},
    {"gb", 1e9},
    {"kib", 1024.0},
    {"mib", 1024.0 * 1024},
    {"gib", 1024.0 * 1024 * 1024},
}};

}  // namespace

std::int64_t MemoryPlan::total_bytes() const {
  std::int64_t sum = 0;
  for (const MemoryItem& i : items) sum += i.bytes;
  return sum;
}

std::int64_t MemoryPlan::bytes_of(std::string_view kind) const {
  std::int64_t sum = 0;
  for (const MemoryItem& i : items)
    if (i.kind == kind) sum += i.bytes;
  return sum;
}

std::int64_t parse_bytes(std::string_view text) {
  const std::string s(text);
  const bool starts_as_number =
      !s.empty() && (std::isdigit(static_cast<unsigned char>(s[0])) || s[0] == '.');
  char* end = nullptr;
  const double number = starts_as_number ? std::strtod(s.c_str(), &end) : -1;
  std::string unit;
  for (const char* p = end; p && *p; ++p)
    if (*p != ' ')
      unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  for (const auto& [name, factor] : kUnits) {
    const double bytes = number * factor;
    if (starts_as_number && unit == name && bytes < 9e18)
      return static_cast<std::int64_t>(std::llround(bytes));
  }
  throw UserError(
      fmt::format("parse_bytes: must be a size like 64MB, 1.5GiB or 4096, got '{}'", s));
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  constexpr std::array<const char*, 4> names = {"kB", "MB", "GB", "TB"};
  double v = static_cast<double>(bytes) / 1000;
  std::size_t i = 0;
  for (; v >= 1000 && i + 1 < names.size(); ++i) v /= 1000;
  return fmt::format("{:.1f} {}", v, names[i]);
}

}  // namespace braintrace
