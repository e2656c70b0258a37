// SPDX-License-Identifier: Apache-2.0
// y = the larger of a and b, element by element; NaN if either is NaN.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_max(const Kernel& k) {
  map2_number(k, [](auto a, auto b) { return a != a || a > b ? a : b; });
}

// The larger operand gets the whole tangent; at a tie each gets half.
Tangent share_max(const Tangent& t, const Value& mine, const Value& other) {
  if (!t) return std::nullopt;
  return select(greater(mine, other), 1,
                select(equal(mine, other), 0.5, zeros_like(mine))) *
         *t;
}

std::vector<Tangent> jvp_max(const Site& s, std::span<const Tangent> d) {
  return {
      sum_tangents(share_max(d[0], s.in[0], s.in[1]), share_max(d[1], s.in[1], s.in[0]))};
}

}  // namespace

const OpDef max_op = {
    .name = "max",
    .traits = Trait::elementwise | Trait::commutative,
    .arity = 2,
    .infer = same_number,
    .eval = eval_max,
    .lower = micro<MicroOp::max>,
    .code = "max($0, $1)",
    .jvp = jvp_max,
};

Value maximum(Arg a, Arg b) { return elementwise(max_op, {a, b}); }

}  // namespace braintrace
