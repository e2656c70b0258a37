// SPDX-License-Identifier: Apache-2.0
// y = ln(1 + e^x), as max(x, 0) + log1p(exp(-|x|)): nothing overflows.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_softplus(const Kernel& k) { map_math(k, SimdFn::softplus); }

// dy = sigmoid(x) dx.
std::vector<Tangent> jvp_softplus(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  return {sigmoid(s.in[0]) * *dx[0]};
}

}  // namespace

const OpDef softplus_op = {
    .name = "softplus",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_softplus,
    .lower = micro<MicroOp::softplus>,
    .code = "softplus($0)",
    .jvp = jvp_softplus,
};

Value softplus(Arg x) { return elementwise_float(softplus_op, {x}); }

}  // namespace braintrace
