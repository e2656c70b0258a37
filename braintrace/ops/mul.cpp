// SPDX-License-Identifier: Apache-2.0
// y = a b, element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

struct Times {
  float operator()(float a, float b) const { return a * b; }
  double operator()(double a, double b) const { return a * b; }
  // Wraps around like numpy.
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) *
                                     static_cast<std::uint32_t>(b));
  }
};

void eval_mul(const Kernel& k) { map2_number(k, Times{}); }

Tangent product_mul(const Tangent& t, const Value& factor) {
  if (!t) return std::nullopt;
  return *t * factor;
}

std::vector<Tangent> jvp_mul(const Site& s, std::span<const Tangent> d) {
  return {sum_tangents(product_mul(d[0], s.in[1]), product_mul(d[1], s.in[0]))};
}

std::vector<Tangent> transpose_mul(const Site& s, std::span<const Tangent> ct) {
  return {s.is_linear(0) ? product_mul(ct[0], s.in[1]) : std::nullopt,
          s.is_linear(1) ? product_mul(ct[0], s.in[0]) : std::nullopt};
}

}  // namespace

const OpDef mul_op = {
    .name = "mul",
    .traits = Trait::elementwise | Trait::commutative,
    .arity = 2,
    .infer = same_number,
    .eval = eval_mul,
    .lower = micro<MicroOp::mul>,
    .code = "$0 * $1",
    .jvp = jvp_mul,
    .transpose = transpose_mul,
    .simplify = simplify_mul,
};

Value mul(Arg a, Arg b) { return elementwise(mul_op, {a, b}); }

}  // namespace braintrace
