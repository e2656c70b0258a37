// SPDX-License-Identifier: Apache-2.0
#pragma once
// An unbiased rank-one estimate of the sensitivities of each group (UORO). With fresh
// signs nu at every step, J = the group's whole Jacobian and p = nu^T dh/dtheta:
//   s' = r0 J s + r1 nu        theta' = theta/r0 + p/r1        g = (signal . s) theta
//   r0 = sqrt((|theta| + eps)/(|J s| + eps))      r1 = sqrt((|p| + eps)/(|nu| + eps))
// Samples that do not mix each have a theta and factors of their own, so that noise does
// not cross the batch (uoro_theta = per_sample). Dense relations take part like others.
#include "braintrace/algo/joint_tail.h"
#include "braintrace/algo/learning_rule.h"

namespace braintrace {

class UoroRule : public LearningRule {
 public:
  explicit UoroRule(const RuleContext& context);

  std::vector<TraceSlot> traces() const override;
  std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const override;
  LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                      std::vector<Value>& eps) const override;
  // (signal . (J s)) theta, of the step before.
  LeafGradients history(StepTerms& t, const GroupSignals& signals,
                        const std::vector<Value>& before,
                        const std::vector<Value>& after) const override;
  // "nu/<group>": the signs of this step, (*varshape, num_state).
  std::vector<RuleInput> optional_inputs() const override;
  std::vector<ValueId> reads() const override;

 private:
  struct GroupEntry {
    std::int64_t group = 0;
    std::vector<std::size_t> direct, dense;  // relations of the context
    std::optional<JointTail> joint = {};     // of the dense ones
    std::vector<WeightVar> leaves;
    bool per_sample = false;
    std::size_t first = 0;  // slot of s; its thetas follow
    Type type;              // of s
  };
  GroupEntry& entry_of(const HiddenGroup& g);
  void add_leaves(GroupEntry& e, const RelationWriter& r) const;
  Value noise(const StepTerms& t, const GroupEntry& e, const Value& key) const;
  // nu^T dh/dtheta by leaf, with a leading sample axis where samples are apart.
  LeafGradients projected(StepTerms& t, const GroupEntry& e, const Value& nu) const;
  void add_direct(LeafGradients& sum, StepTerms& t, const GroupEntry& e, std::size_t r,
                  const Value& nu) const;
  void add_dense(LeafGradients& sum, const StepTerms& t, const GroupEntry& e,
                 std::size_t r, const Value& nu) const;
  void add_joint(LeafGradients& sum, const StepTerms& t, const GroupEntry& e,
                 const Value& nu) const;
  void meet(LeafGradients& out, const GroupEntry& e, const Value& signal, const Value& s,
            const std::vector<Value>& eps) const;

  std::vector<GroupEntry> entries_;
};

}  // namespace braintrace
