// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops behind tile programs: one micro-op over n elements.
#include <cstddef>
#include <string_view>

#include "braintrace/array/dtype.h"
#include "braintrace/ir/lowering.h"

namespace braintrace {

// y may be one of the operands. Operands marked scalar point to one element.
using TileKernel = void (*)(const void* const* operands, void* y, std::size_t n);

// `operand` is the type of the data operands (select: of the choices; its condition is
// boolean). Bit i of `scalars` marks operand i. Null when there is no such kernel: with
// `scalars` = 0 the micro-op does not exist on these types.
TileKernel tile_kernel(MicroOp op, DType operand, DType result, unsigned scalars = 0);

// a b + c (one product: operands a, b, c) or a b + c d (two: a, b, c, d), each operation
// rounded as by itself; f32 or f64. Scalars may be b, and c (one product) or d (two).
TileKernel product_kernel(DType dtype, int products, unsigned scalars);

int arity(MicroOp op);
std::string_view to_string(MicroOp op);
// Rough cost of one f32 element, in ns.
double cost_ns(MicroOp op);

}  // namespace braintrace
