// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/axis.h"

#include <fmt/format.h>

namespace braintrace {

AxisSplit split_at(const Shape& shape, std::int64_t axis) {
  const auto a = static_cast<std::size_t>(axis);
  const std::span<const std::int64_t> dims = shape;
  return {num_elements(dims.first(a)), dims[a], num_elements(dims.subspan(a + 1))};
}

std::int64_t axis_attr(std::string_view who, const Attrs& attrs, std::int64_t rank) {
  const std::int64_t axis = attrs.integer("axis");
  BT_REQUIRE(axis >= 0 && axis < rank,
             fmt::format("{}: axis {} is out of range for rank {}", who, axis, rank));
  return axis;
}

Ints inserted(Ints values, std::int64_t at, std::int64_t value) {
  values.insert(values.begin() + at, value);
  return values;
}

Ints removed(Ints values, std::int64_t at) {
  values.erase(values.begin() + at);
  return values;
}

Shape dims_between(const Shape& shape, std::int64_t from, std::int64_t to) {
  return Shape(shape.begin() + from, shape.begin() + to);
}

Shape joined(std::initializer_list<Shape> parts) {
  Shape out;
  for (const Shape& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

Ints moving_permutation(std::int64_t rank, std::int64_t from, std::int64_t to) {
  return inserted(removed(iota_ints(rank), from), to, from);
}

Value move_axis(const Value& v, std::int64_t from, std::int64_t to) {
  if (from == to) return v;
  return transpose(v, moving_permutation(v.rank(), from, to));
}

Value lane(const Value& v, BatchAxis axis, std::int64_t i) {
  if (!axis) return v;
  return squeeze(slice_axis(v, *axis, i, 1), *axis);
}

}  // namespace braintrace
