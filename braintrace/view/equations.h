// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a rule computes for each traced weight, as formulas for people (the symbols of
// docs/etrace.md).
#include <string>
#include <vector>

#include "braintrace/algo/algorithm.h"
#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

struct RelationEquations {
  std::string weight;                  // slash path
  std::string op;                      // "etp_mv"
  std::string kind;                    // "direct" or "dense"
  std::vector<std::string> recursion;  // one line each
  std::string gradient;
};

// One entry per relation, in their order. Empty for rules without traces.
std::vector<RelationEquations> update_equations(const ETraceGraph& g,
                                                const Algorithm& algorithm);
// What the symbols stand for, and what the rule sends into the traces.
std::vector<std::string> equation_legend(const Algorithm& algorithm);

}  // namespace braintrace
