// SPDX-License-Identifier: Apache-2.0
// Recipes of element-by-element ops.
#include "braintrace/ops/registry.h"
#include "braintrace/testing/random_graph_impl.h"

namespace braintrace::testing::internal {
namespace {

template <Value (*f)(Arg)>
void unary(Writer& w) {
  w.push(f(w.any()));
}
template <Value (*f)(Arg)>
void unary_tamed(Writer& w) {
  w.push(w.tame(f(w.any())));
}
template <Value (*f)(Arg)>
void unary_bounded(Writer& w) {
  w.push(f(tanh(w.any())));
}
template <Value (*f)(Arg)>
void unary_positive(Writer& w) {
  w.push(w.tame(f(w.positive(w.any()))));
}
// No derivative: added to the argument, so that something flows.
template <Value (*f)(Arg)>
void unary_steps(Writer& w) {
  const Value x = w.any();
  w.push(w.tame(x + 0.1 * f(x)));
}
template <Value (*f)(Arg, Arg)>
void binary(Writer& w) {
  const Value a = w.any();
  w.push(w.tame(f(a, w.like(a.shape()))));
}
template <Value (*f)(Arg, Arg)>
void comparison(Writer& w) {
  const Value a = w.any();
  const Value b = w.like(a.shape());
  const Value p = f(a, b);
  w.push(p);
  if (w.chance(0.5)) w.push(select(p, a, b));
}
template <Value (*f)(Arg, Arg)>
void logical(Writer& w) {
  const Shape s = w.shape();
  w.push(f(w.flag(s), w.flag(s)));
}
void negation(Writer& w) { w.push(logical_not(w.flag(w.shape()))); }
void division(Writer& w) {
  const Value a = w.any();
  w.push(w.tame(a / w.positive(w.like(a.shape()))));
}
void power(Writer& w) {
  const Value a = w.any();
  w.push(w.tame(pow(w.positive(a), tanh(w.like(a.shape())))));
}
void choice(Writer& w) {
  const Value a = w.any();
  w.push(select(w.flag(a.shape()), a, w.like(a.shape())));
}
void limits(Writer& w) { w.push(clamp(w.any(), -0.8, 0.7)); }
void conversion(Writer& w) {
  const Value x = w.any();
  w.push(w.tame(astype(astype(x, DType::f32) * 0.5, DType::f64)));
}
void integers(Writer& w) {
  const Value i = w.index(3, w.shape());
  w.push(i * 2 + 1);
  w.push(w.tame(astype(i, DType::f64)));
}
// A hard step with a soft derivative.
void surrogate(Writer& w) {
  const Value x = w.any();
  const Values y = custom_jvp(
      {x, w.like(x.shape())},
      [](const Values& in) -> Values {
        return {astype(greater(in[0], in[1]), DType::f64)};
      },
      [](const Values& in) -> Values {
        return {(in[2] - in[3]) * exp(-square(in[0] - in[1]))};
      },
      {.elementwise = true});
  w.push(y[0]);
}
void neutral(Writer& w) {
  const Value x = w.any();
  switch (w.below(4)) {
    case 0:
      return w.push(x * 1.0);
    case 1:
      return w.push(-(-x));
    case 2:
      return w.push(x - 0.0);
    default:
      return w.push(x + 0.0);
  }
}
void twice(Writer& w) {
  const Value x = w.any();
  w.push(tanh(x) * tanh(x));
}

// Any element-by-element op of the registry, on numbers between 0.9 and 1.5: a new op
// takes part without a recipe of its own.
void newcomer(Writer& w) {
  const OpTable ops = op_table();
  const Value a = w.positive(0.5 * tanh(w.any()));
  for (int tries = 0; tries < 20; ++tries) {
    const auto pick = w.below(static_cast<std::int64_t>(ops.size()));
    const OpDef& op = *ops[static_cast<std::size_t>(pick)];
    const bool fits = has(op.traits, Trait::elementwise) && op.attrs.empty() &&
                      (op.arity == 1 || op.arity == 2);
    if (!fits) continue;
    try {
      const Value y = emit1(op, Values(static_cast<std::size_t>(op.arity), a));
      if (y.dtype() == DType::f64) return w.push(w.tame(y));
    } catch (const UserError&) {
      continue;  // it wants booleans
    }
  }
}

constexpr Recipe kElementwiseRecipes[] = {
    newcomer,
    newcomer,
    newcomer,  // often enough for each single op
    unary<abs>,
    unary<copy>,
    unary<cos>,
    unary<erf>,
    unary<neg>,
    unary<sigmoid>,
    unary<sin>,
    unary<tanh>,
    unary_tamed<softplus>,
    unary_bounded<exp>,
    unary_bounded<expm1>,
    unary_positive<log>,
    unary_positive<log1p>,
    unary_positive<rsqrt>,
    unary_positive<sqrt>,
    unary_steps<floor>,
    unary_steps<sign>,
    unary_steps<stop_gradient>,
    binary<add>,
    binary<sub>,
    binary<mul>,
    binary<maximum>,
    binary<minimum>,
    comparison<equal>,
    comparison<not_equal>,
    comparison<less>,
    comparison<less_equal>,
    comparison<greater>,
    comparison<greater_equal>,
    logical<logical_and>,
    logical<logical_or>,
    logical<logical_xor>,
    negation,
    division,
    power,
    choice,
    limits,
    conversion,
    integers,
    surrogate,
    neutral,
    twice,
};

}  // namespace

std::span<const Recipe> elementwise_recipes() { return kElementwiseRecipes; }

}  // namespace braintrace::testing::internal
