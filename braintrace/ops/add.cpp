// SPDX-License-Identifier: Apache-2.0
// y = a + b, element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

struct Plus {
  float operator()(float a, float b) const { return a + b; }
  double operator()(double a, double b) const { return a + b; }
  // Wraps around like numpy.
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) +
                                     static_cast<std::uint32_t>(b));
  }
};

void eval_add(const Kernel& k) { map2_number(k, Plus{}); }

std::vector<Tangent> jvp_add(const Site&, std::span<const Tangent> d) {
  return {sum_tangents(d[0], d[1])};
}

std::vector<Tangent> transpose_add(const Site& s, std::span<const Tangent> ct) {
  return {s.is_linear(0) ? ct[0] : std::nullopt, s.is_linear(1) ? ct[0] : std::nullopt};
}

}  // namespace

const OpDef add_op = {
    .name = "add",
    .traits = Trait::elementwise | Trait::linear | Trait::commutative,
    .arity = 2,
    .infer = same_number,
    .eval = eval_add,
    .lower = micro<MicroOp::add>,
    .code = "$0 + $1",
    .jvp = jvp_add,
    .transpose = transpose_add,
    .simplify = simplify_add,
};

Value add(Arg a, Arg b) { return elementwise(add_op, {a, b}); }

}  // namespace braintrace
