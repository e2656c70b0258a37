// SPDX-License-Identifier: Apache-2.0
// y = sqrt(x), element by element.
#include <cmath>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_sqrt(const Kernel& k) {
  map_float(k, [](auto x) { return std::sqrt(x); });
}

// dy = dx / (2 y); infinite at 0.
std::vector<Tangent> jvp_sqrt(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  return {*dx[0] / (2 * s.out[0])};
}

}  // namespace

const OpDef sqrt_op = {
    .name = "sqrt",
    .traits = Trait::elementwise,
    .infer = same_float,
    .eval = eval_sqrt,
    .lower = micro<MicroOp::sqrt>,
    .code = "sqrt($0)",
    .jvp = jvp_sqrt,
};

Value sqrt(Arg x) { return elementwise_float(sqrt_op, {x}); }

}  // namespace braintrace
