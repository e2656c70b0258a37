// SPDX-License-Identifier: Apache-2.0
// The third factor of modulatory rules: standing, for one call, or for one gradient
// without a loss.
#include <fmt/format.h>

#include "braintrace/train/learner_impl.h"

namespace braintrace {

void Learner::Impl::check_modulator(const Shape& shape, std::string_view caller) const {
  BT_REQUIRE(algorithm.config.learning_signal() == LearningSignal::modulatory,
             fmt::format("{}: {} has no modulatory signal", caller, algorithm.name));
  Shape of_a_lane = shape;
  if (lanes() && !shape.empty()) {
    BT_REQUIRE(
        shape[0] == *lanes(),
        fmt::format("{}: a modulator needs a leading axis of {} lanes, got shape {}",
                    caller, *lanes(), to_string(shape)));
    of_a_lane.erase(of_a_lane.begin());
  }
  braintrace::check_modulator(rule->graph(), of_a_lane);
}

void Learner::set_modulator(const std::optional<Array>& modulator) {
  const auto mine = claim("set_modulator");
  if (modulator) impl_->check_modulator(modulator->shape(), "set_modulator");
  const DType dtype = impl_->rule->scalar_dtype();
  std::optional<Type> type;
  if (modulator) type = Type{dtype, modulator->shape()};
  if (type != impl_->rule->modulator) impl_->forget_programs();
  impl_->rule->modulator = type;
  if (modulator)
    impl_->rule_inputs["modulator"] = modulator->astype(dtype).contiguous();
  else
    impl_->rule_inputs.erase("modulator");
}

std::optional<Array> Learner::modulator() const {
  const auto it = impl_->rule_inputs.find("modulator");
  return it == impl_->rule_inputs.end() ? std::optional<Array>{} : it->second;
}

Value Learner::update(const Value& x, const Value& modulator) {
  const Values out = update(Values{x}, modulator);
  BT_REQUIRE(
      out.size() == 1,
      fmt::format("learner: the model has {} outputs; call it with a list", out.size()));
  return out[0];
}

// Without a gradient nothing meets the traces, and the modulator has no effect.
Values Learner::update(const Values& xs, const Value& modulator) {
  const auto mine = claim("learner");
  if (impl_->drops_modulators) return (*this)(xs);
  impl_->check_modulator(modulator.shape(), "learner");
  if (!impl_->tracer) return (*this)(xs);
  return impl_->tracer->splice(xs, astype(modulator, impl_->rule->scalar_dtype()));
}

LossResult Learner::Impl::without_loss(const Values& xs, const std::optional<Value>& m) {
  const Values outputs = tracer->splice(xs, m);
  return {.loss = zeros({}, rule->scalar_dtype()), .results = outputs};
}

StepGradient Learner::modulated_grad(const std::vector<Array>& given,
                                     const Array& modulator) {
  const auto mine = claim("modulated_grad");
  impl_->check_modulator(modulator.shape(), "modulated_grad");
  std::vector<Array> args = given;
  args.push_back(modulator.astype(impl_->rule->scalar_dtype()));
  const std::span<const Array> cast = impl_->cast(args);
  const std::shared_ptr<Executable> e = impl_->modulated_program(cast);
  const double weight = 1;
  impl_->call(*e, cast, {&weight, 1}, "modulated_grad");
  return {.loss = 0, .results = e->results(), .gradients = &e->gradients()};
}

std::shared_ptr<Executable> Learner::Impl::modulated_program(
    std::span<const Array> args) {
  std::vector<Type> types;
  for (const Array& a : args) types.push_back(type_of(a));
  for (const ModulatedPlan& p : modulated_plans)
    if (p.types == types) return p.executable;
  const auto fn = [this](const Values& in) {
    return without_loss(Values(in.begin(), in.end() - 1), in.back());
  };
  modulated_plans.push_back(
      {types, gradient_program(types, fn, {}, 0, "modulated_grad")});
  return modulated_plans.back().executable;
}

}  // namespace braintrace
