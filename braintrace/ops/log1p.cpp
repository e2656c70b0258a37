// SPDX-License-Identifier: Apache-2.0
// y = ln(1 + x), exact near 0.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_log1p(const Kernel& k) { map_math(k, SimdFn::log1p); }

std::vector<Tangent> jvp_log1p(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  return {*dx[0] / (1 + s.in[0])};
}

}  // namespace

const OpDef log1p_op = {
    .name = "log1p",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_log1p,
    .lower = micro<MicroOp::log1p>,
    .code = "log1p($0)",
    .jvp = jvp_log1p,
};

Value log1p(Arg x) { return elementwise_float(log1p_op, {x}); }

}  // namespace braintrace
