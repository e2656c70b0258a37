// SPDX-License-Identifier: Apache-2.0
#pragma once
// Traces as parameters see them. A rule keeps the trace of an op's effective weight; what
// stands between the parameter and that weight (a mask, a sign, a low-rank product, ...)
// is applied here, at the weights of the moment, as the reference applies it step by
// step.
#include "braintrace/algo/rule_program.h"

namespace braintrace {

enum class TraceSpace {
  effective,  // as stored
  parameter   // one trace per parameter leaf
};

// Inputs: [parameter leaves | traces as stored]. Outputs: one per slot.
struct TraceViewProgram {
  Graph graph;
  std::vector<std::string> leaves;  // slash paths
  std::vector<TraceSlot> slots;
};
TraceViewProgram parameter_view(const CompiledRule& rule);

}  // namespace braintrace
