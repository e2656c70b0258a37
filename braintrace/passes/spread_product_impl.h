// SPDX-License-Identifier: Apache-2.0
#pragma once
// A matrix product written out as a multiplication.
#include "braintrace/ir/lowering.h"
#include "braintrace/ir/value.h"

namespace braintrace {

// v with each axis where `target` says; -1: of size 1 and dropped. Size 1 elsewhere.
Value with_axes_at(const Value& v, const Ints& target, std::int64_t rank);

// Where the axes of a product go; -1: of size 1 and dropped.
struct SpreadAxes {
  Ints axes;        // by axis of the product: batch, free of the first, of the second
  Ints contracted;  // by contracted axis
  std::int64_t rank;
};
// l r position by position, nothing summed; size 1 where neither has an axis.
Value spread_product(const lowering::Gemm& gemm, const Value& l, const Value& r,
                     const SpreadAxes& to);

}  // namespace braintrace
