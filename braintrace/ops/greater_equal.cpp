// SPDX-License-Identifier: Apache-2.0
// y = (a >= b); false where either is NaN.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_greater_equal(const Kernel& k) {
  compare(k, [](auto a, auto b) { return a >= b; });
}

}  // namespace

const OpDef greater_equal_op = {
    .name = "greater_equal",
    .traits = Trait::elementwise | Trait::no_tangent,
    .arity = 2,
    .infer = comparison,
    .eval = eval_greater_equal,
    .lower = micro<MicroOp::greater_equal>,
    .code = "$0 >= $1",
};

Value greater_equal(Arg a, Arg b) { return elementwise(greater_equal_op, {a, b}); }

}  // namespace braintrace
