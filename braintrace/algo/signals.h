// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the adjoints of hidden states to the signals a rule meets its traces with.
#include "braintrace/algo/learning_rule.h"

namespace braintrace {

// s = s_tot - N^T s_tot, N = the in-step Jacobian between members of a group along the
// edges that `flow` keeps: what reaches the loss through another member is already in
// that member's trace. Adjoints come from reverse mode, so N, too, has nothing of loops
// of unknown length.
class DirectAdjoint {
 public:
  DirectAdjoint(const ETraceGraph& graph, const FlowOptions& flow);
  std::vector<ValueId> reads() const;
  GroupSignals operator()(const StepValues& values, const GroupSignals& total) const;

 private:
  // One member as a variable, and the members it feeds within the step.
  struct Edge {
    std::size_t member;
    std::vector<std::size_t> to;
    SubProgram program;  // (constants, the member) -> the members `to`
    ValueId out;
  };
  const ETraceGraph& graph_;
  std::vector<std::vector<Edge>> edges_;  // per group
};

// One matrix (w, w) per group that has a relation, w = the last axis of its varshape; 1
// where that axis is the batch, or there is none: samples never mix.
using FeedbackMatrices = std::map<std::int64_t, Array>;
FeedbackMatrices draw_feedback(const ETraceGraph& graph, std::uint64_t key);
// Normalised over the last position axis, per state, then sent through B. A group without
// a relation keeps its signal. UserError (runtime) when a matrix is missing.
GroupSignals random_feedback(const ETraceGraph& graph, const FeedbackMatrices& feedback,
                             const GroupSignals& signals);
// The modulator in place of every signal: a scalar, a value per position or per sample
// (what has the rank of varshape and broadcasts to it), or anything that broadcasts to
// (*varshape, num_state). UserError names the group it does not fit.
GroupSignals modulated(const ETraceGraph& graph, const Value& modulator,
                       const GroupSignals& signals);
// The same UserError for the shape alone, before anything runs.
void check_modulator(const ETraceGraph& graph, const Shape& modulator);

// Per-state values in canonical order (info.hidden) as one value per group.
GroupSignals by_group(const ETraceGraph& graph, const std::vector<Value>& per_state);

}  // namespace braintrace
