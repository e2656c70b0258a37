// SPDX-License-Identifier: Apache-2.0
#pragma once
// Back-propagation through time of the cut program: the judge of every online gradient.
// The step is unrolled with stop_gradient where the compiler says that past credit stops,
// and differentiated plainly. Nothing of the traces, tails, D or df is used: of the
// compiled graph only the step's program, the members of groups, the nodes of relations
// and the lists of cuts (docs/etrace.md, The judge).
#include "braintrace/algo/learning_options.h"
#include "braintrace/etrace/etrace_graph.h"
#include "braintrace/testing/bptt.h"

namespace braintrace::testing {

struct CutOptions {
  History history = History::direct;
  std::int64_t window = 1;  // steps credit may cross whole, under deep
};

// The gradient of the summed losses by every float parameter, from the stored states.
// Forward mode instead of reverse where the step holds a loop of unknown length.
// UserError not_supported for opened loops: compile with a large scan_unroll_limit.
StateDict cut_bptt(const ETraceGraph& graph, const std::vector<StepInputs>& sequence,
                   const StepLoss& loss, const CutOptions& options = {});

// One step from the stored states: the adjoint of every group at exit, (*varshape, S),
// nothing cut; and what such signals earn with the instantaneous terms alone.
std::vector<Array> exit_adjoints(const ETraceGraph& graph, const StepInputs& inputs,
                                 const StepLoss& loss);
StateDict signals_meet_instant(const ETraceGraph& graph, const StepInputs& inputs,
                               const std::vector<Array>& signals);

}  // namespace braintrace::testing
