// SPDX-License-Identifier: Apache-2.0
// y = 1 / (1 + e^-x). Only exp(-|x|) is taken, so nothing overflows.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_sigmoid(const Kernel& k) { map_math(k, SimdFn::sigmoid); }

// dy = y (1 - y) dx.
std::vector<Tangent> jvp_sigmoid(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  const Value y = s.out[0];
  return {y * (1 - y) * *dx[0]};
}

}  // namespace

const OpDef sigmoid_op = {
    .name = "sigmoid",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_sigmoid,
    .lower = micro<MicroOp::sigmoid>,
    .code = "sigmoid($0)",
    .jvp = jvp_sigmoid,
};

Value sigmoid(Arg x) { return elementwise_float(sigmoid_op, {x}); }

}  // namespace braintrace
