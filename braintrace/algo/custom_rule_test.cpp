// SPDX-License-Identifier: Apache-2.0
// A rule from outside the library: the one docs/adding_an_algorithm.md writes.
#include <doctest/doctest.h>

#include "braintrace/algo/learning_rule.h"
#include "braintrace/algo/memory_plan.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/online_trial.h"

namespace custom_rule_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// eps_t = gamma D_t eps_{t-1} + df_t (x) x_t: D_RTRL whose past fades.
class DiscountedRule : public LearningRule {
 public:
  DiscountedRule(const RuleContext& context, double gamma)
      : LearningRule(context), gamma_(gamma) {}

  std::vector<TraceSlot> traces() const override {
    std::vector<TraceSlot> out;
    for (const RelationWriter& r : context().relations())
      for (std::int64_t slot = 0; slot < r.num_slots(); ++slot)
        out.push_back({.kind = "discounted",
                       .key = r.slot_key(slot),
                       .relation = static_cast<std::int64_t>(r.index()),
                       .group = r.group().index,
                       .type = r.trace(slot, context().width(r.group().index))});
    return out;
  }

  std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const override {
    std::vector<Value> out = past(t, eps);
    std::size_t i = 0;
    for (std::size_t k = 0; k < context().relations().size(); ++k) {
      const RelationWriter& r = context().relations()[k];
      for (std::int64_t slot = 0; slot < r.num_slots(); ++slot, ++i)
        out[i] = out[i] + r.instant(t.values(), slot, t.df(k));
    }
    return out;
  }

  LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                      std::vector<Value>& eps) const override {
    LeafGradients out;
    auto next = eps.begin();
    for (const RelationWriter& r : context().relations()) {
      const auto end = next + static_cast<std::ptrdiff_t>(r.num_slots());
      const Value& s = signals[static_cast<std::size_t>(r.group().index)];
      add_to(out, r.pull_back(t.values(), r.contracted(t.values(), s, {next, end}),
                              context().options().prologue));
      next = end;
    }
    return out;
  }

  LeafGradients history(StepTerms& t, const GroupSignals& signals,
                        const std::vector<Value>& before,
                        const std::vector<Value>&) const override {
    std::vector<Value> moved = past(t, before);
    return solve(t, signals, moved);
  }

 private:
  std::vector<Value> past(StepTerms& t, const std::vector<Value>& eps) const {
    std::vector<Value> out;
    for (const RelationWriter& r : context().relations())
      for (std::int64_t slot = 0; slot < r.num_slots(); ++slot) {
        const Value& e = eps[out.size()];
        const std::optional<Value>& d = t.D(r.group().index);
        out.push_back(d ? r.carried(slot, *d, e) * gamma_ : zeros_like(e));
      }
    return out;
  }

  double gamma_;
};

Algorithm discounted(double gamma, VjpMethod method = VjpMethod::single_step) {
  return custom_algorithm(
      "Discounted",
      [gamma](const RuleContext& c) {
        return std::make_unique<DiscountedRule>(c, gamma);
      },
      {}, method);
}

OnlineTrial trial() {
  return {.model = R"({"model": {"kind": "two_state_chain", "n_in": 3, "n_rec": 4}})",
          .input = {3},
          .batch_size = 2,
          .steps = 6};
}

}  // namespace

TEST_CASE("a rule of one's own is D_RTRL where its formula is") {
  for (const VjpMethod m : {VjpMethod::single_step, VjpMethod::multi_step}) {
    const StateDict d = trial().online(D_RTRL{.vjp_method = m});
    CHECK(largest(d, "w") > 1e-3);
    CHECK(relative_distance(trial().online(discounted(1, m)), d) < 1e-12);
    CHECK(relative_distance(trial().online(discounted(0.5, m)), d) > 1e-3);
    const auto forgets =
        ETraceConfig::make({.temporal_recursion = TemporalRecursion::none});
    CHECK(relative_distance(trial().online(discounted(0, m)),
                            trial().online(D_RTRL{.vjp_method = m, .config = forgets})) <
          1e-12);
  }
}

TEST_CASE("a rule of one's own runs in windows and on lanes") {
  OnlineTrial window = trial(), lanes = trial();
  window.window = 3;
  lanes.options.vmap = true;
  const StateDict want = trial().online(discounted(0.7));
  CHECK(relative_distance(window.online(discounted(0.7)), want) < 1e-12);
  CHECK(relative_distance(lanes.online(discounted(0.7)), want) < 1e-12);
}

TEST_CASE("a rule of one's own is seen under its names") {
  const auto m = trial().build();
  const Learner l = trial().learner(*m, discounted(0.7));
  CHECK(l.algorithm().name == "Discounted");
  CHECK(l.etraces().at(0).slot.name() == "discounted/0/0/weight");
  CHECK_THROWS_WITH_AS(memory_plan(l.graph(), l.algorithm()),
                       doctest::Contains("Discounted is a rule of your own"), UserError);
}

TEST_CASE("a custom engine and its factory come together") {
  CHECK_THROWS_WITH_AS(custom_algorithm("Nothing", {}),
                       doctest::Contains("Nothing needs a factory"), UserError);
  CHECK_THROWS_WITH_AS(checked({.name = "Half", .engine = Engine::custom}),
                       doctest::Contains("a factory makes the rule of the custom engine"),
                       UserError);
  const auto m = trial().build();
  const Algorithm empty = custom_algorithm(
      "Empty", [](const RuleContext&) { return std::unique_ptr<LearningRule>(); });
  CHECK_THROWS_WITH_AS(trial().learner(*m, empty), doctest::Contains("made no rule"),
                       UserError);
}

}  // namespace custom_rule_test
