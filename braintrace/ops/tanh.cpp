// SPDX-License-Identifier: Apache-2.0
// y = tanh(x), element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_tanh(const Kernel& k) { map_math(k, SimdFn::tanh); }

// dy = (1 - y^2) dx. Written with y: the forward value is already live.
std::vector<Tangent> jvp_tanh(const Site& s, std::span<const Tangent> dx) {
  const Value y = s.out[0];
  return scaled(dx[0], 1 - y * y);
}

}  // namespace

const OpDef tanh_op = {
    .name = "tanh",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_tanh,
    .lower = micro<MicroOp::tanh>,
    .code = "tanh($0)",
    .jvp = jvp_tanh,
};

Value tanh(Arg x) { return elementwise_float(tanh_op, {x}); }

}  // namespace braintrace
