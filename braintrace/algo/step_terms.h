// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one step offers a learning rule: values of the step, D of each group and df of
// each relation. Written into the program under construction when first asked for.
#include <map>
#include <optional>
#include <vector>

#include "braintrace/algo/algorithm.h"
#include "braintrace/algo/loop_values.h"
#include "braintrace/algo/relation_writer.h"

namespace braintrace {

// The compiled graph and how a rule is to read it. Lives as long as its rule.
class RuleContext {
 public:
  RuleContext(const ETraceGraph& graph, const Algorithm& algorithm,
              const LearningOptions& options);
  RuleContext(const RuleContext&) = delete;
  RuleContext& operator=(const RuleContext&) = delete;

  const ETraceGraph& graph() const { return graph_; }
  const Algorithm& algorithm() const { return algorithm_; }
  const ETraceConfig& config() const { return algorithm_.config; }
  const LearningOptions& options() const { return options_; }
  const std::vector<HiddenGroup>& groups() const { return graph_.hidden_groups; }
  // One per direct relation and group, in order. Those inside an opened loop read values
  // of its body.
  const std::vector<RelationWriter>& relations() const { return relations_; }
  const LoopValues& loop(const ScanDescentInfo* descent) const {
    return loops_.at(descent);
  }
  bool has_loops() const { return !loops_.empty(); }
  // The same for relations that keep their full sensitivity.
  const std::vector<RelationWriter>& dense_relations() const { return dense_; }
  // Width of a trace's last axis in a group: num_state, times K under sparse_n.
  std::int64_t width(std::int64_t group) const;
  // What traces per weight entry do from step to step: what the config says of the f
  // side. Hybrid: an f side without memory says nothing about them.
  TemporalRecursion recursion() const;
  // Values of the step's program that terms and relations read.
  std::vector<ValueId> reads() const;
  // The entries of D that can differ from zero: traces leave out the others. Empty: all.
  const std::vector<bool>& pattern(std::int64_t group) const {
    return patterns_[static_cast<std::size_t>(group)];
  }

 private:
  std::vector<bool> pattern_of(const HiddenGroup& g) const;

  const ETraceGraph& graph_;
  Algorithm algorithm_;
  LearningOptions options_;
  std::vector<RelationWriter> relations_, dense_;
  std::map<const ScanDescentInfo*, LoopValues> loops_;
  std::vector<std::vector<bool>> patterns_;  // by group
};

class StepTerms {
 public:
  StepTerms(const RuleContext& context, StepValues values);

  const RuleContext& context() const { return context_; }
  const StepValues& values() const { return values_; }
  // Scalars of the element type: calls before this one, trace steps before this one.
  Value calls, trace_steps;
  // The signals meet the traces from before this step (window entry), not those after it.
  bool at_entry = false;
  // False: the signals are not the step's only ones, and traces that advance when a
  // gradient is taken do not advance for them.
  bool moves_filters = true;
  // How many steps are in the traces that the signals meet.
  Value steps_in_traces() const;
  // What the caller hands in per step, by name (modulator, noise).
  std::map<std::string, Value> inputs;

  // The same step, for signals that meet the traces from before it beside the step's own.
  StepTerms at_old_states() const;
  // The same step, with the values of one sub-step of an opened loop.
  StepTerms within(StepValues body_values) const;

  // What the config puts for D, (*varshape, M, M); nullopt: zero.
  const std::optional<Value>& D(std::int64_t group);
  // The D of a group that an opened loop updates, over the whole loop.
  Value loop_D(std::int64_t group) const;
  // (*varshape, M): the tail's derivative, in slot 0 of a widened group.
  const Value& df(std::size_t relation);
  // The group's Jacobian times a group-shaped value, without building the matrix.
  Value times_jacobian(std::int64_t group, const Value& v);

 private:
  std::optional<Value> make_D(const HiddenGroup& g) const;

  const RuleContext& context_;
  StepValues values_;
  std::map<std::int64_t, std::optional<Value>> d_;
  std::map<std::size_t, Value> df_;
};

// A group-shaped signal on the slots of widened traces; unchanged without a pattern.
Value widened_signal(const HiddenGroup& g, const Value& signal);

}  // namespace braintrace
