// SPDX-License-Identifier: Apache-2.0
// y = a^b on floats, element by element; integers are taken to f32 first.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/simplify.h"

namespace braintrace {
namespace {

void eval_pow(const Kernel& k) {
  const auto n = static_cast<std::size_t>(k.out[0].size());
  const auto run = [&]<class T>(T) {
    simd_pow(k.in[0].data<T>(), k.in[1].data<T>(), k.out[0].mutable_data<T>(), n);
  };
  k.out[0].dtype() == DType::f64 ? run(double{}) : run(float{});
}

// b a^(b-1), and 0 where b is 0 whatever a is.
Value slope_in_base(const Value& a, const Value& b) {
  const Value flat = equal(b, 0);
  return select(flat, 0, b * pow(a, select(flat, 1, b - 1)));
}

// y ln a, and 0 at a = 0 where y is 0 too. NaN for a < 0: no real derivative exists.
Value slope_in_exponent(const Value& a, const Value& y) {
  return log(select(equal(a, 0), 1, a)) * y;
}

std::vector<Tangent> jvp_pow(const Site& s, std::span<const Tangent> d) {
  const Value a = s.in[0], b = s.in[1];
  Tangent da, db;
  if (d[0]) da = slope_in_base(a, b) * *d[0];
  if (d[1]) db = slope_in_exponent(a, s.out[0]) * *d[1];
  return {sum_tangents(da, db)};
}

}  // namespace

const OpDef pow_op = {
    .name = "pow",
    .traits = Trait::elementwise,
    .arity = 2,
    .infer = same_float,
    .eval = eval_pow,
    .lower = micro<MicroOp::pow>,
    .code = "pow($0, $1)",
    .jvp = jvp_pow,
    .simplify = simplify_by_one,
};

Value pow(Arg a, Arg b) { return elementwise_float(pow_op, {a, b}); }

}  // namespace braintrace
