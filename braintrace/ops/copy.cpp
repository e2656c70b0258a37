// SPDX-License-Identifier: Apache-2.0
// y = x under a name of its own.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_copy(const Kernel& k) { k.out[0] = k.in[0]; }

std::vector<Tangent> transpose_copy(const Site&, std::span<const Tangent> ct) {
  return {ct[0]};
}

}  // namespace

const OpDef copy_op = {
    .name = "copy",
    .traits = Trait::elementwise | Trait::linear,
    .infer = same_type,
    .eval = eval_copy,
    .lower = micro<MicroOp::copy>,
    .code = "$0",
    .transpose = transpose_copy,
};

Value copy(Arg x) { return emit1(copy_op, {settle(x)}, {}, x.loc); }

}  // namespace braintrace
