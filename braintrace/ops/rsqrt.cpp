// SPDX-License-Identifier: Apache-2.0
// y = 1 / sqrt(x), element by element.
#include <cmath>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_rsqrt(const Kernel& k) {
  map_float(k, []<class T>(T x) { return T(1) / std::sqrt(x); });
}

// dy = -y^3 / 2 dx.
std::vector<Tangent> jvp_rsqrt(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  const Value y = s.out[0];
  return {-0.5 * (y * y * y) * *dx[0]};
}

}  // namespace

const OpDef rsqrt_op = {
    .name = "rsqrt",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_rsqrt,
    .lower = micro<MicroOp::rsqrt>,
    .code = "rsqrt($0)",
    .jvp = jvp_rsqrt,
};

Value rsqrt(Arg x) { return elementwise_float(rsqrt_op, {x}); }

}  // namespace braintrace
