// SPDX-License-Identifier: Apache-2.0
#pragma once
// What files of shape, index and reduction ops share: axis arithmetic and lanes of a
// batch.
#include <string_view>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

// The elements around one axis: an array is outer x n x inner.
struct AxisSplit {
  std::int64_t outer = 1, n = 1, inner = 1;
};
AxisSplit split_at(const Shape& shape, std::int64_t axis);

inline std::int64_t dim_at(const Shape& shape, std::int64_t axis) {
  return shape[static_cast<std::size_t>(axis)];
}

// The attribute `axis`, which the IR wants in [0, rank). UserError names `who`.
std::int64_t axis_attr(std::string_view who, const Attrs& attrs, std::int64_t rank);

Ints inserted(Ints values, std::int64_t at, std::int64_t value);
Ints removed(Ints values, std::int64_t at);

// The dimensions [from, to) of a shape.
Shape dims_between(const Shape& shape, std::int64_t from, std::int64_t to);
Shape joined(std::initializer_list<Shape> parts);

// The permutation that takes axis `from` to place `to`, the others in order.
Ints moving_permutation(std::int64_t rank, std::int64_t from, std::int64_t to);
Value move_axis(const Value& v, std::int64_t from, std::int64_t to);

// ---- batch rules ----
// Where axis a of one lane lies once a batch axis is inserted at b.
inline std::int64_t behind(std::int64_t a, std::int64_t b) { return a >= b ? a + 1 : a; }
// Lane i of a batched value; an unbatched value itself.
Value lane(const Value& v, BatchAxis axis, std::int64_t i);

}  // namespace braintrace
