// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/indexing.h"

#include <limits>

#include <fmt/format.h>

namespace braintrace {

Shape picked_shape(const Shape& x, const Shape& indices, std::int64_t axis) {
  return joined({dims_between(x, 0, axis), indices,
                 dims_between(x, axis + 1, static_cast<std::int64_t>(x.size()))});
}

void require_indices(std::string_view who, const Type& indices) {
  BT_REQUIRE_KIND(
      indices.dtype == DType::i32, ErrorKind::type,
      fmt::format("{}: indices must be i32, got {}", who, to_string(indices)));
}

const std::int32_t* checked_indices(std::string_view what, const Array& indices,
                                    std::int64_t n) {
  const auto* p = indices.data<std::int32_t>();
  for (std::int64_t i = 0; i < indices.size(); ++i)
    BT_REQUIRE(p[i] >= 0 && p[i] < n,
               fmt::format("{} {} is outside [0, {})", what, p[i], n));
  return p;
}

Value lane_indices(std::string_view who, const Value& indices, std::int64_t d) {
  const std::int64_t n = indices.dim(0);
  BT_REQUIRE_KIND(
      d == 0 || n <= std::numeric_limits<std::int32_t>::max() / d,
      ErrorKind::not_supported,
      fmt::format("{}: {} lanes of {} places pass the range of i32", who, n, d));
  Shape column(indices.shape().size(), 1);
  column[0] = n;
  const Value first = reshape(iota(n) * static_cast<int>(d), column);
  const Value inside = logical_and(indices >= 0, indices < static_cast<int>(d));
  return select(inside, indices + first, -1);
}

}  // namespace braintrace
