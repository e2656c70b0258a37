// SPDX-License-Identifier: Apache-2.0
// y = a / b on floats, element by element; integers are taken to f32 first.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

void eval_div(const Kernel& k) {
  map2_float(k, [](auto a, auto b) { return a / b; });
}

// dy = da / b - (y / b) db.
std::vector<Tangent> jvp_div(const Site& s, std::span<const Tangent> d) {
  const Value b = s.in[1];
  Tangent da, db;
  if (d[0]) da = *d[0] / b;
  if (d[1]) db = -(s.out[0] / b) * *d[1];
  return {sum_tangents(da, db)};
}

std::vector<Tangent> transpose_div(const Site& s, std::span<const Tangent> ct) {
  if (!ct[0] || !s.is_linear(0)) return {std::nullopt, std::nullopt};
  return {*ct[0] / s.in[1], std::nullopt};
}

}  // namespace

const OpDef div_op = {
    .name = "div",
    .traits = Trait::elementwise,
    .arity = 2,
    .infer = same_float,
    .eval = eval_div,
    .lower = micro<MicroOp::div>,
    .code = "$0 / $1",
    .jvp = jvp_div,
    .transpose = transpose_div,
    .simplify = simplify_by_one,
};

Value div(Arg a, Arg b) { return elementwise_float(div_op, {a, b}); }

}  // namespace braintrace
