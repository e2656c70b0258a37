// SPDX-License-Identifier: Apache-2.0
// y = e^x - 1, exact near 0.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_expm1(const Kernel& k) { map_math(k, SimdFn::expm1); }

// dy = (y + 1) dx.
std::vector<Tangent> jvp_expm1(const Site& s, std::span<const Tangent> dx) {
  return scaled(dx[0], s.out[0] + 1);
}

}  // namespace

const OpDef expm1_op = {
    .name = "expm1",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_expm1,
    .lower = micro<MicroOp::expm1>,
    .code = "expm1($0)",
    .jvp = jvp_expm1,
};

Value expm1(Arg x) { return elementwise_float(expm1_op, {x}); }

}  // namespace braintrace
