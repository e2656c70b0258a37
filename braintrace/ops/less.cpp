// SPDX-License-Identifier: Apache-2.0
// y = (a < b); false where either is NaN.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_less(const Kernel& k) {
  compare(k, [](auto a, auto b) { return a < b; });
}

}  // namespace

const OpDef less_op = {
    .name = "less",
    .traits = Trait::elementwise | Trait::no_tangent,
    .arity = 2,
    .infer = comparison,
    .eval = eval_less,
    .lower = micro<MicroOp::less>,
    .code = "$0 < $1",
};

Value less(Arg a, Arg b) { return elementwise(less_op, {a, b}); }

}  // namespace braintrace
