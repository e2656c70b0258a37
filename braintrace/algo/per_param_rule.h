// SPDX-License-Identifier: Apache-2.0
#pragma once
// One trace value per weight entry and state (D_RTRL and its relatives):
//   eps_t = R_t eps_{t-1} + df_t (x) x_t        g = s . eps_t
// R is what the config puts for D. With a kappa filter the signal meets
//   F_t = kappa F_{t-1} + eps_t
#include "braintrace/algo/learning_rule.h"

namespace braintrace {

class PerParamRule : public LearningRule {
 public:
  // `relations`: indices into context.relations().
  PerParamRule(const RuleContext& context, std::vector<std::size_t> relations);

  std::vector<TraceSlot> traces() const override;
  std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const override;
  LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                      std::vector<Value>& eps) const override;
  LeafGradients history(StepTerms& t, const GroupSignals& signals,
                        const std::vector<Value>& before,
                        const std::vector<Value>& after) const override;

  WindowForm window_form() const override;
  double filter() const override { return kappa_; }
  std::vector<Value> credit(StepTerms& t, const GroupSignals& r) const override;
  LeafGradients pull_back(StepTerms& t,
                          const std::vector<Value>& operands) const override;
  LeafGradients entry(StepTerms& t, const GroupSignals& lambda,
                      const GroupSignals& filtered,
                      const std::vector<Value>& before) const override;
  std::vector<Value> moved(StepTerms& t, const ToExit& m,
                           const std::vector<Value>& before) const override;
  std::vector<Value> arrived(StepTerms& t, const ToExit& m) const override;

 private:
  struct Entry {
    std::size_t relation;  // in context.relations()
    std::size_t first;     // first of its traces
    std::size_t slots;
    const ScanDescentInfo* loop;  // the opened loop it lives in, or null
  };
  bool filtered() const { return kappa_ > 0; }
  // R eps (and the new trace) of one entry over one step or sub-step.
  void move(StepTerms& t, const Entry& e, std::vector<Value>& eps, bool instant) const;
  // The same for all entries; those in opened loops over all sub-steps.
  std::vector<Value> moved_on(StepTerms& t, const std::vector<Value>& eps,
                              bool instant) const;
  std::vector<Value> slots_of(const std::vector<Value>& eps, const Entry& e,
                              bool filter) const;
  LeafGradients contract(StepTerms& t, const GroupSignals& signals, const Entry& e,
                         const std::vector<Value>& slots) const;
  Value carried(StepTerms& t, const Entry& e, std::int64_t slot, const Value& eps) const;
  Value stored(const Value& eps) const;
  Value loaded(const Value& eps, const Entry& e) const;

  std::vector<Entry> entries_;
  std::size_t num_slots_ = 0;  // unfiltered traces; filtered twins follow
  double kappa_ = 0;
};

}  // namespace braintrace
