// SPDX-License-Identifier: Apache-2.0
// y = sin(x), element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_sin(const Kernel& k) { map_math(k, SimdFn::sin); }

std::vector<Tangent> jvp_sin(const Site& s, std::span<const Tangent> dx) {
  return scaled(dx[0], cos(s.in[0]));
}

}  // namespace

const OpDef sin_op = {
    .name = "sin",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_sin,
    .lower = micro<MicroOp::sin>,
    .code = "sin($0)",
    .jvp = jvp_sin,
};

Value sin(Arg x) { return elementwise_float(sin_op, {x}); }

}  // namespace braintrace
