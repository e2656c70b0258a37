// SPDX-License-Identifier: Apache-2.0
// y = the smaller of a and b, element by element; NaN if either is NaN.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval_min(const Kernel& k) {
  map2_number(k, [](auto a, auto b) { return a != a || a < b ? a : b; });
}

// The smaller operand gets the whole tangent; at a tie each gets half.
Tangent share_min(const Tangent& t, const Value& mine, const Value& other) {
  if (!t) return std::nullopt;
  return select(less(mine, other), 1, select(equal(mine, other), 0.5, zeros_like(mine))) *
         *t;
}

std::vector<Tangent> jvp_min(const Site& s, std::span<const Tangent> d) {
  return {
      sum_tangents(share_min(d[0], s.in[0], s.in[1]), share_min(d[1], s.in[1], s.in[0]))};
}

}  // namespace

const OpDef min_op = {
    .name = "min",
    .traits = Trait::elementwise | Trait::commutative,
    .arity = 2,
    .infer = same_number,
    .eval = eval_min,
    .lower = micro<MicroOp::min>,
    .code = "min($0, $1)",
    .jvp = jvp_min,
};

Value minimum(Arg a, Arg b) { return elementwise(min_op, {a, b}); }

}  // namespace braintrace
