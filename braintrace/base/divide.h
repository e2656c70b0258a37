// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace braintrace {

// How many parts of size b hold a.
constexpr std::int64_t divided_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace braintrace
