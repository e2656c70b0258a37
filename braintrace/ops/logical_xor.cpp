// SPDX-License-Identifier: Apache-2.0
// y = a exclusive or b. Numbers count as true when they are not 0.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_logical_xor(const Kernel& k) {
  map2<bool>(k, [](bool a, bool b) { return a != b; });
}

}  // namespace

const OpDef logical_xor_op = {
    .name = "logical_xor",
    .traits = Trait::elementwise | Trait::no_tangent | Trait::commutative,
    .arity = 2,
    .infer = same_boolean,
    .eval = eval_logical_xor,
    .lower = micro<MicroOp::logical_xor>,
    .code = "$0 != $1",
};

Value logical_xor(Arg a, Arg b) { return elementwise_boolean(logical_xor_op, {a, b}); }

}  // namespace braintrace
