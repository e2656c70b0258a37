// SPDX-License-Identifier: Apache-2.0
// y = (a == b); false where either is NaN.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_equal(const Kernel& k) {
  compare(k, [](auto a, auto b) { return a == b; });
}

}  // namespace

const OpDef equal_op = {
    .name = "equal",
    .traits = Trait::elementwise | Trait::no_tangent | Trait::commutative,
    .arity = 2,
    .infer = comparison,
    .eval = eval_equal,
    .lower = micro<MicroOp::equal>,
    .code = "$0 == $1",
};

Value equal(Arg a, Arg b) { return elementwise(equal_op, {a, b}); }

}  // namespace braintrace
