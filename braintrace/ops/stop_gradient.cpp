// SPDX-License-Identifier: Apache-2.0
// y = x, through which no derivative flows.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

void eval_stop_gradient(const Kernel& k) { k.out[0] = k.in[0]; }

}  // namespace

const OpDef stop_gradient_op = {
    .name = "stop_gradient",
    .traits = Trait::elementwise | Trait::stops_gradient,
    .infer = same_type,
    .eval = eval_stop_gradient,
    .lower = micro<MicroOp::copy>,
    .code = "stop_gradient($0)",
    .simplify = simplify_idempotent,
};

Value stop_gradient(Arg x) { return emit1(stop_gradient_op, {settle(x)}, {}, x.loc); }

}  // namespace braintrace
