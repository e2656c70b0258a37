// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many bytes a learning rule will store for a compiled model, before anything runs.
#include <cstdint>
#include <vector>

#include "braintrace/algo/algorithm.h"
#include "braintrace/base/memory_plan.h"
#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

struct MemoryPlanOptions {
  // Steps a window keeps for its reverse pass (BPTT: the sequence). Counts for multi-step
  // rules: the data inputs of trainable ops and the hidden states of each step, which is
  // the least a reverse pass needs.
  std::int64_t window = 0;
  bool shared_theta = false;  // UORO: one theta for all samples, as in the reference
};

// Every array the rule carries from step to step, with its exact shape. A learner takes
// less where states of a large trace repeat (train/trace_packing.h). Needs, for SnAp:
// a graph compiled with its sparse_n. UserError: SnAp without a pattern, BPTT without a
// window, a rule that cannot open the model's long loops (kind not_implemented).
MemoryPlan memory_plan(const ETraceGraph& graph, const Algorithm& algorithm,
                       const MemoryPlanOptions& options = {});

// Hybrid: whether the trace per weight entry is smaller than the two factors.
bool stores_per_param(const ETraceGraph& graph, const HiddenParamOpRelation& relation);

struct AlgorithmChoice {
  Algorithm algorithm;
  MemoryPlan plan;
  std::vector<MemoryPlan> considered;  // in order of preference, up to the chosen one
};

struct ChooseOptions {
  DecayOrRank decay_or_rank = 0.9;  // of the factorized rules
};

// The first of D_RTRL, Hybrid and pp_prop whose traces fit into the budget. UserError
// tells what the smallest would take.
AlgorithmChoice choose_algorithm(const ETraceGraph& graph, std::int64_t budget_bytes,
                                 const ChooseOptions& options = {});

}  // namespace braintrace
