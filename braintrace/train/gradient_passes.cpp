// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/gradient_passes.h"

#include "braintrace/base/error.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

// Below, a plan takes longer than a plain loop.
constexpr std::size_t kPlanBytes = std::size_t{1} << 16;

// f(element of a, element of b) in the elements' own type; b may be one number.
template <class F>
void update(Array& a, const Array& b, F f) {
  BT_INVARIANT(is_float(a.dtype()) && a.dtype() == b.dtype());
  BT_INVARIANT(a.shape() == b.shape() || b.size() == 1);
  if (!a.is_contiguous()) a = a.contiguous();
  if (!b.is_contiguous()) return update(a, b.contiguous(), f);
  const auto each = [&]<class T>(T) {
    T* to = a.mutable_data<T>();
    const T* from = b.data<T>();
    const std::int64_t step = b.size() == 1 ? 0 : 1;
    for (std::int64_t i = 0, n = a.size(); i < n; ++i) to[i] = f(to[i], from[i * step]);
  };
  if (a.dtype() == DType::f64) return each(double{});
  each(float{});
}

}  // namespace

bool GradientPasses::is_worth_a_plan(const Pass& pass) const {
  std::size_t bytes = 0;
  for (const Array* a : pass.places) bytes += a->num_bytes();
  return pool_ != nullptr && bytes >= kPlanBytes;
}

void GradientPasses::run(Pass& pass, Write write) {
  pass.inputs.assign(pass.places.begin(), pass.places.end());
  pass.inputs.insert(pass.inputs.end(), pass.operands.begin(), pass.operands.end());
  const std::size_t count = pass.places.size();
  bool fits = pass.plan && pass.types.size() == pass.inputs.size();
  for (std::size_t i = 0; fits && i < pass.inputs.size(); ++i)
    fits = pass.types[i].dtype == pass.inputs[i]->dtype() &&
           pass.types[i].shape == pass.inputs[i]->shape();
  if (!fits) {
    const auto b = Builder::create();
    std::vector<Value> in, out;
    PlanOptions options{.pool = pool_};
    pass.types.clear();
    for (const Array* a : pass.inputs) {
      pass.types.push_back(type_of(*a));
      in.push_back(b->input(pass.types.back()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back(write(in[i], in[count + i]));
      options.in_place.emplace_back(i, i);
    }
    pass.plan.emplace(b->finish(out), options);
  }
  pass.plan->run_at(pass.inputs, pass.outputs);
  for (std::size_t i = 0; i < count; ++i) {
    if (pass.plan->moved(i)) continue;
    swap(*pass.places[i], pass.outputs[i]);
    // The place has one holder again; what is here keeps its room for a shape.
    pass.outputs[i] = nothing_;
  }
}

void GradientPasses::add(StateDict& sums, const StateDict& terms) {
  sum_.places.clear(), sum_.operands.clear();
  for (const auto& [name, term] : terms) {
    sum_.places.push_back(&sums.at(name));
    sum_.operands.push_back(&term);
  }
  if (is_worth_a_plan(sum_))
    return run(sum_, [](const Value& a, const Value& b) { return a + b; });
  for (std::size_t i = 0; i < sum_.places.size(); ++i)
    update(*sum_.places[i], *sum_.operands[i], [](auto a, auto b) { return a + b; });
}

void GradientPasses::divide(StateDict& values, double divisor) {
  quotient_.places.clear(), quotient_.operands.clear();
  if (divisors_.empty()) divisors_ = {zeros({}, DType::f32), zeros({}, DType::f64)};
  *divisors_[0].mutable_data<float>() = static_cast<float>(divisor);
  *divisors_[1].mutable_data<double>() = divisor;
  for (auto& [name, value] : values) {
    quotient_.places.push_back(&value);
    quotient_.operands.push_back(&divisors_[value.dtype() == DType::f64 ? 1 : 0]);
  }
  if (is_worth_a_plan(quotient_))
    return run(quotient_, [](const Value& a, const Value& b) { return a / b; });
  for (std::size_t i = 0; i < quotient_.places.size(); ++i)
    update(*quotient_.places[i], *quotient_.operands[i],
           [](auto a, auto b) { return a / b; });
}

}  // namespace braintrace
