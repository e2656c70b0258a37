// SPDX-License-Identifier: Apache-2.0
// y = a - b, element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

struct Minus {
  float operator()(float a, float b) const { return a - b; }
  double operator()(double a, double b) const { return a - b; }
  // Wraps around like numpy.
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) -
                                     static_cast<std::uint32_t>(b));
  }
};

void eval_sub(const Kernel& k) { map2_number(k, Minus{}); }

Tangent negated(const Tangent& t) {
  if (!t) return std::nullopt;
  return -*t;
}

std::vector<Tangent> jvp_sub(const Site&, std::span<const Tangent> d) {
  if (d[0] && d[1]) return {*d[0] - *d[1]};
  return {d[0] ? d[0] : negated(d[1])};
}

std::vector<Tangent> transpose_sub(const Site& s, std::span<const Tangent> ct) {
  return {s.is_linear(0) ? ct[0] : std::nullopt,
          s.is_linear(1) ? negated(ct[0]) : std::nullopt};
}

}  // namespace

const OpDef sub_op = {
    .name = "sub",
    .traits = Trait::elementwise | Trait::linear,
    .arity = 2,
    .infer = same_number,
    .eval = eval_sub,
    .lower = micro<MicroOp::sub>,
    .code = "$0 - $1",
    .jvp = jvp_sub,
    .transpose = transpose_sub,
    .simplify = simplify_sub,
};

Value sub(Arg a, Arg b) { return elementwise(sub_op, {a, b}); }

}  // namespace braintrace
