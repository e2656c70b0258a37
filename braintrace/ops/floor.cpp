// SPDX-License-Identifier: Apache-2.0
// y = the largest whole number <= x. Integers and booleans are whole already.
#include <cmath>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

void eval_floor(const Kernel& k) {
  map_float(k, [](auto x) { return std::floor(x); });
}

}  // namespace

const OpDef floor_op = {
    .name = "floor",
    .traits = Trait::elementwise | Trait::no_tangent,
    .infer = same_float,
    .eval = eval_floor,
    .lower = micro<MicroOp::floor>,
    .code = "floor($0)",
    .simplify = simplify_idempotent,
};

Value floor(Arg x) {
  if (x.value.dtype() == DType::i32 || x.value.dtype() == DType::boolean) return x.value;
  return elementwise_float(floor_op, {x});
}

}  // namespace braintrace
