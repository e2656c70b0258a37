// SPDX-License-Identifier: Apache-2.0
// y = -x, element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

struct Negate {
  float operator()(float x) const { return -x; }
  double operator()(double x) const { return -x; }
  // Wraps around like numpy.
  std::int32_t operator()(std::int32_t x) const {
    return static_cast<std::int32_t>(0U - static_cast<std::uint32_t>(x));
  }
};

void eval_neg(const Kernel& k) { map_number(k, Negate{}); }

std::vector<Tangent> jvp_neg(const Site&, std::span<const Tangent> dx) {
  if (!dx[0]) return {std::nullopt};
  return {-*dx[0]};
}

std::vector<Tangent> transpose_neg(const Site&, std::span<const Tangent> ct) {
  if (!ct[0]) return {std::nullopt};
  return {-*ct[0]};
}

}  // namespace

const OpDef neg_op = {
    .name = "neg",
    .traits = Trait::elementwise | Trait::linear,
    .infer = same_number,
    .eval = eval_neg,
    .lower = micro<MicroOp::neg>,
    .code = "-$0",
    .jvp = jvp_neg,
    .transpose = transpose_neg,
    .simplify = simplify_involution,
};

Value neg(Arg x) { return elementwise(neg_op, {x}); }

}  // namespace braintrace
