// SPDX-License-Identifier: Apache-2.0
#pragma once
// A learning rule: how traces recur, and how a signal meets a trace. It writes IR into
// the program under construction and knows neither kernels nor ops. This is the seam for
// rules of your own (docs/adding_an_algorithm.md).
#include <memory>
#include <string>
#include <vector>

#include "braintrace/algo/step_terms.h"

namespace braintrace {

// One array a rule carries from step to step.
struct TraceSlot {
  std::string kind;  // "bwg", "kappa_filtered", "x", "df", "s_tilde", "theta_tilde", ...
  std::string key;   // weight key of the op, "" for others
  std::int64_t relation = -1, group = -1;
  Type type;
  std::optional<Path> parameter = {};  // owner, when it is not a relation's
  std::optional<Array> initial = {};   // default: zeros

  std::string name() const;  // "bwg/0/1/weight", unique within a rule
};

// A value the caller gives at every step (modulator, noise).
struct RuleInput {
  std::string name;
  Type type;
};

// Signals are (*varshape, num_state), one per group.
using GroupSignals = std::vector<Value>;

class LearningRule {
 public:
  explicit LearningRule(const RuleContext& context) : context_(context) {}
  virtual ~LearningRule() = default;

  const RuleContext& context() const { return context_; }

  virtual std::vector<TraceSlot> traces() const = 0;
  // The traces after this step.
  virtual std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const = 0;
  // signal . eps: what a signal at step exit earns with the traces of that moment. Traces
  // that advance only when a gradient is taken are moved here.
  virtual LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                              std::vector<Value>& eps) const = 0;
  // The past's share of solve(): the instantaneous term of this step left out.
  virtual LeafGradients history(StepTerms& t, const GroupSignals& signals,
                                const std::vector<Value>& before,
                                const std::vector<Value>& after) const = 0;
  // What the caller must give at every step, found in StepTerms::inputs.
  virtual std::vector<RuleInput> inputs() const { return {}; }
  // Values of the step's program it reads beyond those of the context.
  virtual std::vector<ValueId> reads() const { return {}; }

 private:
  const RuleContext& context_;
};

// Several rules, each with its own relations, as one: traces side by side, gradients
// added.
class CompositeRule : public LearningRule {
 public:
  CompositeRule(const RuleContext& context,
                std::vector<std::unique_ptr<LearningRule>> parts);
  std::vector<TraceSlot> traces() const override;
  std::vector<Value> roll(StepTerms& t, const std::vector<Value>& eps) const override;
  LeafGradients solve(StepTerms& t, const GroupSignals& signals,
                      std::vector<Value>& eps) const override;
  LeafGradients history(StepTerms& t, const GroupSignals& signals,
                        const std::vector<Value>& before,
                        const std::vector<Value>& after) const override;
  std::vector<RuleInput> inputs() const override;
  std::vector<ValueId> reads() const override;

 private:
  std::vector<std::unique_ptr<LearningRule>> parts_;
  std::vector<std::size_t> counts_;  // traces per part
};

// The rule of a config: the engine of its factorization, and the full sensitivity of
// dense relations.
std::unique_ptr<LearningRule> make_rule(const RuleContext& context);

}  // namespace braintrace
