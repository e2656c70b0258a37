// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/shape.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace {

std::string to_string(const Shape& s) { return fmt::format("[{}]", fmt::join(s, ",")); }

std::int64_t num_elements(std::span<const std::int64_t> s) {
  std::int64_t n = 1;
  for (std::int64_t d : s) n *= d;
  return n;
}

void check_shape(std::string_view who, std::span<const std::int64_t> s) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 40;
  BT_REQUIRE(s.size() <= 32,
             fmt::format("{}: rank must be at most 32, got {}", who, s.size()));
  std::int64_t n = 1;
  for (std::int64_t d : s) {
    BT_REQUIRE(d >= 0, fmt::format("{}: dimensions must be >= 0, got [{}]", who,
                                   fmt::join(s, ",")));
    // Zero-sized axes must not hide a huge neighbour.
    const std::int64_t factor = std::max<std::int64_t>(d, 1);
    BT_REQUIRE(factor <= kLimit / n,
               fmt::format("{}: shape [{}] has more than 2^40 elements", who,
                           fmt::join(s, ",")));
    n *= factor;
  }
}

Ints row_major_strides(std::span<const std::int64_t> s) {
  Ints strides(s.size());
  std::int64_t step = 1;
  for (std::size_t i = s.size(); i-- > 0;) {
    strides[i] = step;
    step *= s[i];
  }
  return strides;
}

std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t db = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (da != db && da != 1 && db != 1) return std::nullopt;
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return out;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  const auto joined = broadcast_shapes(from, to);
  return joined && *joined == to;
}

std::int64_t normalize_axis(std::string_view who, std::int64_t axis, std::int64_t rank) {
  BT_REQUIRE(axis >= -rank && axis < rank,
             fmt::format("{}: axis {} is out of range for rank {}", who, axis, rank));
  return axis < 0 ? axis + rank : axis;
}

Ints normalize_axes(std::string_view who, const Ints& axes, std::int64_t rank) {
  Ints out;
  for (std::int64_t a : axes) out.push_back(normalize_axis(who, a, rank));
  std::sort(out.begin(), out.end());
  BT_REQUIRE(
      std::adjacent_find(out.begin(), out.end()) == out.end(),
      fmt::format("{}: axes must be distinct, got [{}]", who, fmt::join(axes, ",")));
  return out;
}

bool contains(std::span<const std::int64_t> list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Ints iota_ints(std::int64_t n) {
  Ints out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), std::int64_t{0});
  return out;
}

Ints inverse(const Ints& permutation) {
  Ints out(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    out[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  return out;
}

}  // namespace braintrace
