// SPDX-License-Identifier: Apache-2.0
// y = (a != b); true where either is NaN.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_not_equal(const Kernel& k) {
  compare(k, [](auto a, auto b) { return a != b; });
}

}  // namespace

const OpDef not_equal_op = {
    .name = "not_equal",
    .traits = Trait::elementwise | Trait::no_tangent | Trait::commutative,
    .arity = 2,
    .infer = comparison,
    .eval = eval_not_equal,
    .lower = micro<MicroOp::not_equal>,
    .code = "$0 != $1",
};

Value not_equal(Arg a, Arg b) { return elementwise(not_equal_op, {a, b}); }

}  // namespace braintrace
