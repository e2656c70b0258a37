// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which parameters lose nothing of their past: everything they do to later steps goes
// through traces and transitions that no cut touches.
#include <string>
#include <vector>

#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

struct ParameterExactness {
  Path path;
  bool exact = false;
  std::string because;  // why exact, or the first thing that is lost
};

// One per verdict, in the same order. Exact: a rule that carries D (D_RTRL) gives the
// gradient of back-propagation through time for any sequence. Never says exact of a
// parameter that is not; may miss one whose lost paths happen to carry nothing.
// Needs: a graph compiled with mixing = cut, without recurrent mixing.
std::vector<ParameterExactness> parameter_exactness(const ETraceGraph& graph);

}  // namespace braintrace
