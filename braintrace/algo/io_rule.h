// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two smoothed factors in place of a trace per weight entry (pp_prop and its relatives):
//   X_t = a_x X_{t-1} + x_t        f_t = a_f R_t f_{t-1} + (1 - a_f) df_t
//   g = (s . f_t / c) (x) X_t      c = 1 - a_f^n after n steps
// R is what the config puts for D; c undoes the bias of a filter that starts at zero.
// Approximate: a sum of products is taken for the product of two sums.
#include "braintrace/algo/learning_rule.h"

namespace braintrace {

class IoRule : public LearningRule {
 public:
  // `relations`: indices into context.relations(). UserError when the output of an op has
  // another shape than its group (but a weight without data may be shared along leading
  // axes).
  IoRule(const RuleContext& context, const std::vector<std::size_t>& relations);

  std::vector<TraceSlot> traces() const override { return slots_; }
  std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const override;
  LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                      std::vector<Value>& eps) const override;
  // The product of the two newest terms is left out: every product with an older one.
  LeafGradients history(StepTerms& t, const GroupSignals& signals,
                        const std::vector<Value>& before,
                        const std::vector<Value>& after) const override;

  // A window meets the data itself: the filter of X runs over the cotangents, from the
  // last step to the first.
  WindowForm window_form() const override { return WindowForm::factored; }
  std::vector<ValueId> fixed_in_windows() const override;
  double data_filter() const override { return a_x_; }
  MetData met(StepTerms& t, const GroupSignals& signals, const std::vector<Value>& after,
              OwnTerms own) const override;
  std::vector<Value> earned(StepTerms& t, const std::vector<Value>& now,
                            const std::vector<Value>& with_data) const override;
  std::vector<Value> earned_before(StepTerms& t, const std::vector<Value>& older,
                                   const std::vector<Value>& before) const override;
  LeafGradients pull_back(StepTerms& t,
                          const std::vector<Value>& operands) const override;

 private:
  struct Entry {
    std::size_t relation;          // in context.relations()
    std::size_t f;                 // its slot
    std::optional<std::size_t> x;  // slot of its data, when it has any
  };
  std::optional<std::size_t> x_slot(std::size_t relation);
  const RelationWriter& writer(const Entry& e) const {
    return context().relations()[e.relation];
  }
  Value newest(StepTerms& t, const Entry& e) const;  // (1 - a_f) df
  bool carries(StepTerms& t, const Entry& e) const;  // a_f R is not zero
  // s . f / c, shaped like a state of the group.
  Value meet(const StepTerms& t, const GroupSignals& signals, const Entry& e,
             const Value& f) const;

  std::vector<TraceSlot> slots_;
  std::vector<Entry> entries_;
  double a_x_ = 0, a_f_ = 0;
};

}  // namespace braintrace
