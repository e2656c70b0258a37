// SPDX-License-Identifier: Apache-2.0
#pragma once
// A learning rule as programs of one step: rolling the traces, and meeting them with the
// adjoints of the hidden states.
#include <set>

#include "braintrace/algo/synthetic_gradient.h"
#include "braintrace/algo/while_terms.h"

namespace braintrace {

// evolve:      traces move, no gradient
// single_step: adjoints at step exit; traces move, then meet the signal
// entry:       adjoints at window entry meet the traces as they are
// old_states:  the same for what a single step's loss reads of old states; traces stay
enum class RuleMode { evolve, single_step, entry, old_states };

inline constexpr std::string_view kModulator = "modulator";  // among the further inputs

// Inputs:  [reads | adjoint per hidden state (not under evolve) | traces | calls |
//           trace steps | further inputs]
// Outputs: [traces | gradient per leaf]
struct RuleProgram {
  Graph graph;
  RuleMode mode = RuleMode::evolve;
  std::vector<ValueId> reads;
  std::size_t num_adjoints = 0, num_traces = 0;
  std::vector<RuleInput> inputs;
  std::vector<std::string> leaves;  // slash paths of the gradients
};

// A rule with all it needs to write its programs.
class CompiledRule {
 public:
  CompiledRule(std::shared_ptr<const ETraceGraph> graph, const Algorithm& algorithm,
               const LearningOptions& options);

  const ETraceGraph& graph() const { return *graph_; }
  const RuleContext& context() const { return *context_; }
  RuleContext& context() { return *context_; }
  const Algorithm& algorithm() const { return context_->algorithm(); }
  const LearningOptions& options() const { return context_->options(); }
  const LearningRule& rule() const { return *rule_; }
  const std::vector<TraceSlot>& traces() const { return traces_; }
  // Values of the step's program the programs below read.
  const std::vector<ValueId>& reads() const { return reads_; }
  DType scalar_dtype() const;  // of `calls` and `trace steps`

  FeedbackMatrices feedback;  // for random feedback; drawn at construction
  // For bootstrapped signals: predicts what the future sends to the states at exit.
  std::optional<SyntheticGradient> synthesizer = {};
  // For modulatory signals: the type of the modulator that will be given. Under vmap it
  // has a leading lane axis, unless it is one number.
  std::optional<Type> modulator = {};
  // Optional inputs of the rule that will be given, by name.
  std::set<std::string> given = {};

  // `given_modulator`: of one that comes in place of the standing one.
  RuleProgram write(RuleMode mode, const std::optional<Type>& given_modulator = {}) const;
  // True when the newest step's gradient of traced parameters comes from reverse mode and
  // the rule adds the past's share only.
  bool adds_history_only() const;
  // True when the signal is the adjoint at entry of the step or window, and meets the
  // traces from before it.
  bool meets_at_entry() const;
  // True when what a loss reads of old states is to meet the traces from before the step.
  bool credits_old_states() const;
  // Does reverse mode through the newest step give (part of) this leaf's gradient?
  bool newest_by_reverse_mode(const std::string& leaf) const;
  // What a program of this mode takes beside values, traces and counters.
  std::vector<RuleInput> inputs(RuleMode mode,
                                const std::optional<Type>& given_modulator = {}) const;
  // A leaf of a refused parameter (on_refused = freeze): its gradient is zero.
  bool is_frozen(const std::string& leaf) const;

  // What meets the traces, given the adjoint of each hidden state.
  GroupSignals signals(const StepTerms& t, const std::vector<Value>& adjoints,
                       RuleMode mode) const;

 private:
  void check_deep() const;

  std::shared_ptr<const ETraceGraph> graph_;
  std::unique_ptr<RuleContext> context_;
  std::unique_ptr<LearningRule> rule_;
  std::unique_ptr<DirectAdjoint> direct_;
  std::unique_ptr<WhileTerms> while_terms_;  // null: no loop of unknown length
  std::vector<TraceSlot> traces_;
  std::vector<ValueId> reads_;
  std::set<std::string> traced_leaves_;  // leaves that some relation traces
};

}  // namespace braintrace
