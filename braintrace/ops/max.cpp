// SPDX-License-Identifier: Apache-2.0
// y = the larger of a and b, element by element; NaN if either is NaN.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

void eval(const Kernel& k) {
  map2_number(k, [](auto a, auto b) { return a != a || a > b ? a : b; });
}

// The larger operand gets the whole tangent; at a tie each gets half.
Tangent share(const Tangent& t, const Value& mine, const Value& other) {
  if (!t) return std::nullopt;
  return select(greater(mine, other), 1,
                select(equal(mine, other), 0.5, zeros_like(mine))) *
         *t;
}

std::vector<Tangent> jvp(const Site& s, std::span<const Tangent> d) {
  return {sum_tangents(share(d[0], s.in[0], s.in[1]), share(d[1], s.in[1], s.in[0]))};
}

}  // namespace

const OpDef max_op = {
    .name = "max",
    .traits = Trait::elementwise | Trait::commutative,
    .arity = 2,
    .infer = same_number,
    .eval = eval,
    .lower = micro<MicroOp::max>,
    .code = "max($0, $1)",
    .jvp = jvp,
};

Value maximum(Arg a, Arg b) { return elementwise(max_op, {a, b}); }

}  // namespace braintrace
