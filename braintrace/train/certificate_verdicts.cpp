// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/certificate_verdicts.h"

#include <algorithm>

#include "braintrace/etrace/exactness.h"

namespace braintrace {
namespace {

// Rules that leave nothing out on this sequence.
std::string why_all_exact(const Algorithm& a, bool whole) {
  if (a.engine == Engine::bptt) return "reverse mode through the whole sequence";
  if (a.engine == Engine::exact_rtrl) return "full sensitivities";
  if (a.vjp_method == VjpMethod::multi_step && whole)
    return "one window holds the whole sequence";
  return "";
}

// Do the neighbours of every position hold all it can ever reach? Then a longer reach
// (closed over n >= 2 steps already) adds nothing.
bool keeps_all_it_reaches(const HiddenGroup& g) {
  if (!g.snap) return !g.has_recurrence;
  const SnapPattern& s = *g.snap;
  return close_adjacency(s.adjacency, s.varshape, 3).axes == s.adjacency.axes;
}

// What the rule itself approximates in the past of traced weights, whatever the model.
std::string rule_approximation(const ETraceGraph& graph, const Algorithm& a,
                               const LearningOptions& o) {
  const ETraceConfig& c = a.config;
  if (a.engine == Engine::io_dim || a.engine == Engine::hybrid)
    return "its past is a product of two smoothed factors";
  if (a.engine == Engine::random_projection) return "its past is a random projection";
  if (c.learning_signal() == LearningSignal::random_feedback)
    return "the signal passes a random matrix";
  if (c.learning_signal() == LearningSignal::modulatory) return "the signal is given";
  if (c.learning_signal() == LearningSignal::bootstrapped)
    return "the future is predicted";
  if (c.kappa()) return "its traces are filtered";
  if (c.temporal_recursion().f != TemporalRecursion::jacobian)
    return "a constant stands for D";
  if (c.recurrence_scope() == RecurrenceScope::coupled)
    return "of the Jacobian only own-position blocks are kept";
  if (c.recurrence_scope() == RecurrenceScope::sparse_n &&
      !std::all_of(graph.hidden_groups.begin(), graph.hidden_groups.end(),
                   keeps_all_it_reaches))
    return "of the Jacobian only near positions are kept";
  if (graph.options.mixing == Mixing::sum) return "D holds column sums";
  if (o.newest != Newest::exact || o.signal != SignalAdjoint::direct ||
      o.plain_params != PlainParams::newest_step ||
      o.prologue != PrologueRule::pull_back || o.old_states != OldStates::credit)
    return "options of the reference are on";
  if (a.options.trace_dtype && size_of(*a.options.trace_dtype) < size_of(DType::f32))
    return "its traces are stored in few bits";
  return "";
}

}  // namespace

std::map<std::string, Promise> promises(const ETraceGraph& graph, const Algorithm& a,
                                        const LearningOptions& o, bool whole) {
  std::map<std::string, Promise> out;
  const std::string all = why_all_exact(a, whole);
  const std::string rule = rule_approximation(graph, a, o);
  const std::vector<ParameterExactness> facts = parameter_exactness(graph);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const ParameterVerdict& v = graph.verdicts[i];
    Promise p{"approximate", facts[i].because};
    const bool plain = v.verdict == Verdict::local;
    if (v.verdict == Verdict::refused)
      p = {"refused", v.reason};
    else if (!all.empty())
      p = {"exact", all};
    else if (facts[i].exact && (rule.empty() || plain))
      p = {"exact", facts[i].because};
    else if (plain && o.history == History::deep)
      p = {"approximate", "its past counts inside a window only"};
    else if (plain)
      p = {"local", v.reason};
    else if (!rule.empty())
      p.because = rule;
    out.emplace(to_slashes(v.path), std::move(p));
  }
  return out;
}

}  // namespace braintrace
