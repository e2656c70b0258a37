// SPDX-License-Identifier: Apache-2.0
// y = a and b. Numbers count as true when they are not 0.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_logical_and(const Kernel& k) {
  map2<bool>(k, [](bool a, bool b) { return a && b; });
}

}  // namespace

const OpDef logical_and_op = {
    .name = "logical_and",
    .traits = Trait::elementwise | Trait::no_tangent | Trait::commutative,
    .arity = 2,
    .infer = same_boolean,
    .eval = eval_logical_and,
    .lower = micro<MicroOp::logical_and>,
    .code = "$0 && $1",
};

Value logical_and(Arg a, Arg b) { return elementwise_boolean(logical_and_op, {a, b}); }

}  // namespace braintrace
