// SPDX-License-Identifier: Apache-2.0
#pragma once
// Real-time recurrent learning with nothing left out:
//   E_t = (dh_t/dh_{t-1}) E_{t-1} + dh_t/dtheta               g = s . E
// over all hidden states, whatever their groups, and all float parameters that reach one.
// E is (*leaf, *state). Exact when it meets the adjoint of the states at step or window
// entry, which is how it is used (CompiledRule::meets_at_entry).
#include "braintrace/algo/learning_rule.h"

namespace braintrace {

class ExactRtrlRule : public LearningRule {
 public:
  // UserError (not_supported) names a state that is not hidden and yet carries credit
  // from step to step.
  explicit ExactRtrlRule(const RuleContext& context);

  std::vector<TraceSlot> traces() const override;
  std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const override;
  LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                      std::vector<Value>& eps) const override;
  LeafGradients history(StepTerms& t, const GroupSignals& signals,
                        const std::vector<Value>& before,
                        const std::vector<Value>& after) const override;
  std::vector<ValueId> reads() const override;

 private:
  std::vector<HiddenVar> states_;
  std::vector<WeightVar> leaves_;  // that reach a state
  Graph step_;                     // inputs of the step -> states at exit
};

}  // namespace braintrace
