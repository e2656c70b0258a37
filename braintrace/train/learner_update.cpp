// SPDX-License-Identifier: Apache-2.0
// Single steps with their gradient, and with the update of the parameters.
#include "braintrace/train/learner_impl.h"
#include "braintrace/train/update_program.h"

namespace braintrace {

// What an optimiser and a program that holds its rule share.
class UpdateInStep {
 public:
  explicit UpdateInStep(Optimizer& o) : optimizer_(o) {}

  // Clipping wants all gradients before the first update.
  bool is_possible() const {
    return !optimizer_.options_.clip_norm && !optimizer_.options_.clip_value;
  }
  const UpdateRule& rule() const { return optimizer_.rule_; }
  double rate() const { return optimizer_.learning_rate(); }
  double count() const { return static_cast<double>(optimizer_.num_updates_ + 1); }
  void counted() { ++optimizer_.num_updates_; }

  // In the order with_update wants. New ones are zeros. `leaves`: by gradient.
  void moments(const StepProgram& gradient, const std::vector<std::size_t>& leaves,
               std::vector<Array*>& out) {
    out.clear();
    for (std::size_t i = 0; i < leaves.size(); ++i)
      for (const std::string& name : optimizer_.kept_)
        out.push_back(&moment(name, gradient.gradients[i], gradient.leaves[leaves[i]]));
  }

 private:
  Array& moment(const std::string& name, const std::string& path,
                const ProgramLeaf& leaf) {
    StateDict& of_name = optimizer_.moments_[name];
    const Array& w = leaf.state->stored(leaf.leaf);
    auto at = of_name.find(path);
    if (at == of_name.end())
      at = of_name.emplace(path, zeros(w.shape(), w.dtype())).first;
    Array& m = at->second;
    BT_REQUIRE(m.shape() == w.shape(),
               fmt::format("step_update: '{}' is {}, moment '{}' of the optimiser {}",
                           path, to_string(w.shape()), name, to_string(m.shape())));
    if (m.dtype() != w.dtype()) m = m.astype(w.dtype());
    if (!m.is_contiguous()) m = m.contiguous();
    return m;
  }

  Optimizer& optimizer_;
};

Executable& Learner::Impl::of_handle(const LossHandle& loss, const LearnerUse* use,
                                     std::string_view caller) const {
  BT_REQUIRE(loss.owner_.get() == use,
             fmt::format("{}: the loss was traced by another learner; call trace_loss of "
                         "this one",
                         caller));
  BT_REQUIRE_KIND(known.contains(loss.executable_.get()), ErrorKind::runtime,
                  fmt::format("{}: the learner has changed (batch size, feedback, "
                              "predictor, kind of modulator) since the loss was traced; "
                              "call trace_loss again",
                              caller));
  return *loss.executable_;
}

Learner::Impl::UpdatePlan& Learner::Impl::update_plan(const Executable& gradient,
                                                      const UpdateRule& rule) {
  for (UpdatePlan& u : update_plans)
    if (u.gradient == &gradient && same_but_rate(u.rule, rule)) return u;
  auto e = std::make_shared<Executable>(
      with_update(gradient.of_rule(), rule), packing, options.executor,
      options.executor == ExecutorKind::plan ? threads() : nullptr, options.profile);
  known.insert(e.get());
  std::vector<std::size_t> leaves;
  for (const std::string& path : gradient.of_rule().gradients)
    leaves.push_back(leaf_of(gradient.of_rule(), path));
  return update_plans.emplace_back(&gradient, rule, std::move(e), std::move(leaves));
}

StepGradient Learner::step_grad(const std::vector<Array>& args, LossHandle& loss,
                                double weight) {
  const auto mine = claim("step_grad");
  Executable& e = impl_->of_handle(loss, use_.get(), "step_grad");
  impl_->call(e, impl_->cast(args), {&weight, 1}, "step_grad");
  return {.loss = e.loss(), .results = e.results(), .gradients = &e.gradients()};
}

StepGradient Learner::step_update(const std::vector<Array>& args, LossHandle& loss,
                                  Optimizer& optimizer, double weight) {
  const auto mine = claim("step_update");
  const Executable& gradient = impl_->of_handle(loss, use_.get(), "step_update");
  UpdateInStep inside(optimizer);
  if (!inside.is_possible() || options().learning.check_finite) {
    StepGradient g = step_grad(args, loss, weight);
    optimizer.update(model(), *g.gradients);
    return {.loss = g.loss, .results = g.results};
  }
  Impl::UpdatePlan& u = impl_->update_plan(gradient, inside.rule());
  inside.moments(gradient.of_rule(), u.leaves, u.moments);
  impl_->call(*u.executable, impl_->cast(args), {&weight, 1}, "step_update",
              {.moments = u.moments, .rate = inside.rate(), .count = inside.count()});
  inside.counted();
  return {.loss = u.executable->loss(), .results = u.executable->results()};
}

}  // namespace braintrace
