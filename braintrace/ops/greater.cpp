// SPDX-License-Identifier: Apache-2.0
// y = (a > b); false where either is NaN.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_greater(const Kernel& k) {
  compare(k, [](auto a, auto b) { return a > b; });
}

}  // namespace

const OpDef greater_op = {
    .name = "greater",
    .traits = Trait::elementwise | Trait::no_tangent,
    .arity = 2,
    .infer = comparison,
    .eval = eval_greater,
    .lower = micro<MicroOp::greater>,
    .code = "$0 > $1",
};

Value greater(Arg a, Arg b) { return elementwise(greater_op, {a, b}); }

}  // namespace braintrace
