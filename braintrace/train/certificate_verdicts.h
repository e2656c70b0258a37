// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a learning rule promises for each parameter, before anything runs.
#include <map>
#include <string>

#include "braintrace/algo/algorithm.h"
#include "braintrace/algo/learning_options.h"
#include "braintrace/etrace/etrace_graph.h"

namespace braintrace {

struct Promise {
  std::string verdict;  // "exact", "approximate", "local", "refused"
  std::string because;
};

// `whole`: the sequence fits one window. By slash path of the parameter.
std::map<std::string, Promise> promises(const ETraceGraph& graph, const Algorithm& a,
                                        const LearningOptions& options, bool whole);

}  // namespace braintrace
