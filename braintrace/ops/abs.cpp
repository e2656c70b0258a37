// SPDX-License-Identifier: Apache-2.0
// y = |x|, element by element.
#include <cmath>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

struct Magnitude {
  float operator()(float x) const { return std::abs(x); }
  double operator()(double x) const { return std::abs(x); }
  // The smallest integer has no opposite and stays, like numpy.
  std::int32_t operator()(std::int32_t x) const {
    if (x >= 0) return x;
    return static_cast<std::int32_t>(0U - static_cast<std::uint32_t>(x));
  }
};

void eval_abs(const Kernel& k) { map_number(k, Magnitude{}); }

// dy = sign(x) dx; 0 at 0.
std::vector<Tangent> jvp_abs(const Site& s, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  return {sign(s.in[0]) * *dx[0]};
}

}  // namespace

const OpDef abs_op = {
    .name = "abs",
    .traits = Trait::elementwise,
    .infer = same_number,
    .eval = eval_abs,
    .lower = micro<MicroOp::abs>,
    .code = "abs($0)",
    .jvp = jvp_abs,
    .simplify = simplify_idempotent,
};

Value abs(Arg x) { return elementwise(abs_op, {x}); }

}  // namespace braintrace
