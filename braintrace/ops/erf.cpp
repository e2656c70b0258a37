// SPDX-License-Identifier: Apache-2.0
// y = erf(x), element by element.
#include <numbers>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_erf(const Kernel& k) { map_math(k, SimdFn::erf); }

// dy = 2/sqrt(pi) exp(-x^2) dx.
std::vector<Tangent> jvp_erf(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  const Value x = s.in[0];
  return {2 * std::numbers::inv_sqrtpi * exp(-(x * x)) * *dx[0]};
}

}  // namespace

const OpDef erf_op = {
    .name = "erf",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_erf,
    .lower = micro<MicroOp::erf>,
    .code = "erf($0)",
    .jvp = jvp_erf,
};

Value erf(Arg x) { return elementwise_float(erf_op, {x}); }

}  // namespace braintrace
