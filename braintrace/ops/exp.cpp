// SPDX-License-Identifier: Apache-2.0
// y = e^x, element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_exp(const Kernel& k) { map_math(k, SimdFn::exp); }

// dy = y dx.
std::vector<Tangent> jvp_exp(const Site& s, std::span<const Tangent> dx) {
  return scaled(dx[0], s.out[0]);
}

}  // namespace

const OpDef exp_op = {
    .name = "exp",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_exp,
    .lower = micro<MicroOp::exp>,
    .code = "exp($0)",
    .jvp = jvp_exp,
};

Value exp(Arg x) { return elementwise_float(exp_op, {x}); }

}  // namespace braintrace
