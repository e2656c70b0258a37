// SPDX-License-Identifier: Apache-2.0
#pragma once
// The full sensitivity of relations whose tail runs through other weights or mixing ops:
//   E_t = R_t E_{t-1} + d(tail o op o prologue)/d leaf       g = s . E_t
// E is (*varshape, num_state, *leaf), one per relation, parameter leaf and group: with
// the states in front a signal meets it and a step moves it in one pass. R is what the
// config puts for D; under sparse_n the whole Jacobian, without building it.
// With a kappa filter the signal meets F_t = kappa F_{t-1} + E_t.
#include <map>

#include "braintrace/algo/joint_tail.h"
#include "braintrace/algo/learning_rule.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

class DenseRule : public LearningRule {
 public:
  // All of context.dense_relations().
  explicit DenseRule(const RuleContext& context);

  std::vector<TraceSlot> traces() const override;
  std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const override;
  LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                      std::vector<Value>& eps) const override;
  LeafGradients history(StepTerms& t, const GroupSignals& signals,
                        const std::vector<Value>& before,
                        const std::vector<Value>& after) const override;
  std::vector<ValueId> reads() const override;

  // Credit form, except where R is not the D of the context. Its operands are the leaves.
  WindowForm window_form() const override;
  double filter() const override { return kappa_; }
  std::vector<Value> credit(StepTerms& t, const GroupSignals& r) const override;
  LeafGradients pull_back(StepTerms& t,
                          const std::vector<Value>& operands) const override;
  LeafGradients entry(StepTerms& t, const GroupSignals& lambda,
                      const GroupSignals& filtered,
                      const std::vector<Value>& before) const override;
  // Where what lies between op and group is larger than a trace, keeping it for every
  // step of a window would not fit.
  bool rolls_to_exit() const override;
  std::vector<Value> moved(StepTerms& t, const ToExit& m,
                           const std::vector<Value>& before) const override;
  std::vector<Value> arrived(StepTerms& t, const ToExit& m) const override;

 private:
  struct Entry {
    std::size_t relation;  // in context.dense_relations()
    WeightVar leaf;
    Type type;   // of E, as computed
    bool apart;  // no sample (axis 0 of the group) moves another
  };
  // Entries whose instantaneous terms one backward sweep gives: one lane per entry of the
  // group, or per entry of a sample where samples are apart.
  struct Sweep {
    bool apart;
    std::optional<std::size_t> joint;  // in joint_; else the tail of the one relation
    std::vector<std::size_t> entries;
  };
  struct Joint {
    std::vector<std::size_t> relations;
    JointTail tail;
  };
  bool filtered() const { return kappa_ > 0; }
  void join_tails();
  void plan_sweeps();
  bool goes_back(const Joint& j, const Entry& e) const;
  const RelationWriter& writer(const Entry& e) const;
  Values inputs_of(const StepTerms& t, const Entry& e) const;  // of its leaf program
  // The instantaneous terms of all entries, or P times them, P (*varshape, S, S) by
  // group: the product is taken before the sensitivity grows. Absent: zero.
  using Led = std::vector<std::optional<Value>>;
  std::vector<Value> instants(const StepTerms& t, const Led* led = nullptr) const;
  Value instant(const StepTerms& t, const Entry& e, const Value* led) const;
  void sweep(const StepTerms& t, const Sweep& s, const Value* led,
             std::vector<Value>& out) const;
  // The cotangents of y, by relation.
  std::map<std::size_t, Value> back_to_ys(const StepValues& v, const Sweep& s,
                                          const Value& ct) const;
  Values back_to_entries(const StepTerms& t, const Sweep& s, const Value& ct) const;
  Value of_leaf(const LeafGradients& g, const Entry& e) const;  // zeros: nothing flows
  // R E; nullopt: nothing is carried.
  std::optional<Value> carried(StepTerms& t, const Entry& e, const Value& eps) const;
  // s R, to meet E itself, which is larger; nullopt: R E is the way, or nothing.
  std::optional<Value> led_back(StepTerms& t, const Entry& e, const Value& s) const;
  bool moves_in_passing(const Entry& e) const;
  const Value& own(const GroupSignals& signals, const Entry& e) const;
  static void contract(LeafGradients& out, const Value& s, const Entry& e,
                       const Value& eps);
  Value stored(const Value& eps) const;
  static Value loaded(const Value& eps, const Entry& e);

  std::vector<Entry> entries_;
  std::vector<Joint> joint_;  // per group with several relations
  std::vector<Sweep> sweeps_;
  double kappa_ = 0;
};

}  // namespace braintrace
