// SPDX-License-Identifier: Apache-2.0
// y = cos(x), element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_cos(const Kernel& k) { map_math(k, SimdFn::cos); }

std::vector<Tangent> jvp_cos(const Site& s, std::span<const Tangent> dx) {
  return scaled(dx[0], -sin(s.in[0]));
}

}  // namespace

const OpDef cos_op = {
    .name = "cos",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_cos,
    .lower = micro<MicroOp::cos>,
    .code = "cos($0)",
    .jvp = jvp_cos,
};

Value cos(Arg x) { return elementwise_float(cos_op, {x}); }

}  // namespace braintrace
