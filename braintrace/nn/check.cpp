// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"

namespace braintrace::nn::internal {

std::int64_t positive(std::string_view who, std::string_view what, std::int64_t n) {
  BT_REQUIRE(n >= 1, fmt::format("{}: {} must be >= 1, got {}", who, what, n));
  return n;
}

std::int64_t joined_size(std::string_view who, std::int64_t in, std::int64_t out) {
  return positive(who, "in_size", in) + positive(who, "out_size", out);
}

void require_features(std::string_view who, const Value& x, std::int64_t n) {
  const Shape shape = x.shape();
  BT_REQUIRE(!shape.empty() && shape.back() == n,
             fmt::format("{}: the last axis of x must have {} entries, got x {}", who, n,
                         to_string(shape)));
}

void require_ends_with(std::string_view who, const Value& x, const Shape& size) {
  const Shape shape = x.shape();
  const bool fits = shape.size() >= size.size() &&
                    std::equal(size.rbegin(), size.rend(), shape.rbegin());
  BT_REQUIRE(fits, fmt::format("{}: x must end with {}, got {}", who, to_string(size),
                               to_string(shape)));
}

void require_broadcasts(std::string_view who, std::string_view what, const Shape& from,
                        const Shape& to) {
  BT_REQUIRE(broadcasts_to(from, to),
             fmt::format("{}: {} must broadcast to {}, got {}", who, what, to_string(to),
                         to_string(from)));
}

}  // namespace braintrace::nn::internal
