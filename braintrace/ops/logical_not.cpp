// SPDX-License-Identifier: Apache-2.0
// y = not x. Numbers count as true when they are not 0.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

void eval_logical_not(const Kernel& k) {
  map1<bool>(k, [](bool x) { return !x; });
}

}  // namespace

const OpDef logical_not_op = {
    .name = "logical_not",
    .traits = Trait::elementwise | Trait::no_tangent,
    .infer = same_boolean,
    .eval = eval_logical_not,
    .lower = micro<MicroOp::logical_not>,
    .code = "!$0",
    .simplify = simplify_involution,
};

Value logical_not(Arg x) { return elementwise_boolean(logical_not_op, {x}); }

}  // namespace braintrace
