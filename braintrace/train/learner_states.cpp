// SPDX-License-Identifier: Apache-2.0
// The states of a learner's step, by kind.
#include "braintrace/train/learner.h"

namespace braintrace {
namespace {

template <class Keep>
std::vector<NamedState> states_of(const ETraceGraph& graph, const Keep& keep) {
  std::vector<NamedState> out;
  const StepModel& step = graph.module_info.step;
  for (std::size_t i : step.retrieved)
    if (keep(step.states[i].kind))
      out.push_back({step.states[i].path, step.states[i].state});
  return out;
}

bool is_param(StateKind k) { return k == StateKind::param; }

}  // namespace

std::vector<NamedState> Learner::path_to_states() const {
  return states_of(graph(), [](StateKind) { return true; });
}

std::vector<NamedState> Learner::param_states() const {
  return states_of(graph(), is_param);
}

std::vector<NamedState> Learner::hidden_states() const {
  return states_of(graph(), [](StateKind k) { return is_hidden(k); });
}

std::vector<NamedState> Learner::other_states() const {
  return states_of(graph(), [](StateKind k) { return !is_param(k) && !is_hidden(k); });
}

}  // namespace braintrace
