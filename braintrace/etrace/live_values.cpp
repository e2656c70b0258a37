// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/live_values.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace braintrace {
namespace {

// Everything the given values have a derivative in, by value id.
std::vector<bool> derivative_sources(const GraphIndex& index,
                                     const std::vector<ValueId>& of) {
  std::vector<bool> live(index.graph().num_values(), false);
  for (ValueId v : of) live[v.index] = is_float(index.graph().type(v).dtype);
  const auto nodes = index.graph().nodes();
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const Node& n = nodes[i];
    const bool wanted = std::any_of(n.outputs.begin(), n.outputs.end(),
                                    [&](ValueId v) { return live[v.index]; });
    for (std::size_t k = 0; wanted && k < n.inputs.size(); ++k)
      if (passes_tangent(index, {i, k})) live[n.inputs[k].index] = true;
  }
  return live;
}

// A float array that the step reads and writes, and that is no hidden state.
struct Carried {
  Path path;
  ValueId in, out;
};

std::vector<Carried> carried_arrays(const ModuleInfo& info) {
  std::vector<Carried> out;
  for (const StepState& s : info.step.states) {
    if (s.kind != StateKind::short_term || !s.written) continue;
    for (std::size_t k = 0; k < s.in.size(); ++k)
      if (is_float(info.program().type(s.in[k]).dtype) &&
          !info.index->uses(s.in[k]).empty())
        out.push_back({s.path, s.in[k], s.out[k]});
  }
  return out;
}

// Those that move an output or a hidden state of a later step, by whatever detour.
std::vector<Carried> carriers_that_matter(const ModuleInfo& info) {
  std::vector<Carried> open = carried_arrays(info), found;
  const auto outputs = info.program().outputs().first(info.num_var_out);
  std::vector<ValueId> ends(outputs.begin(), outputs.end());
  for (const HiddenVar& h : info.hidden) ends.push_back(h.out);
  for (bool grew = !open.empty(); grew;) {
    const std::vector<bool> live = derivative_sources(*info.index, ends);
    const auto dead = std::stable_partition(
        open.begin(), open.end(), [&](const Carried& c) { return !live[c.in.index]; });
    grew = dead != open.end();
    for (auto it = dead; it != open.end(); ++it) ends.push_back(it->out);
    found.insert(found.end(), dead, open.end());
    open.erase(dead, open.end());
  }
  return found;
}

}  // namespace

std::vector<bool> live_values(const ModuleInfo& info) {
  const auto outputs = info.program().outputs();
  const auto model = outputs.first(info.num_var_out);
  std::vector<ValueId> ends(model.begin(), model.end());
  // A parameter passes through as it is; behind the states stand values for rules.
  for (ValueId v : outputs.subspan(info.num_var_out, info.num_var_state))
    if (!info.weight_at(v)) ends.push_back(v);
  return derivative_sources(*info.index, ends);
}

std::vector<CompilationRecord> short_term_cuts(const ModuleInfo& info) {
  std::vector<CompilationRecord> out;
  for (const Carried& c : carriers_that_matter(info)) {
    const std::vector<bool> source = derivative_sources(*info.index, {c.out});
    std::vector<Path> hidden;
    std::set<Path> weights;
    for (const HiddenVar& h : info.hidden)
      if (source[h.in.index]) hidden.push_back(h.path);
    for (const WeightVar& w : info.weights)
      if (source[w.id.index]) weights.insert(w.path);
    if (hidden.empty() && weights.empty()) continue;
    std::vector<Path> past = hidden;
    past.insert(past.end(), weights.begin(), weights.end());
    CompilationRecord r{
        .kind = DiagnosticKind::history_cut,
        .level = DiagnosticLevel::info,
        .message = fmt::format("{} is carried to the next step but is no hidden state: "
                               "the past of {} is not credited through it",
                               to_string(c.path), path_list(past)),
        .hidden_paths = hidden,
        .more_weights = {weights.begin(), weights.end()},
        .context = {{"weights", path_list({weights.begin(), weights.end()})}}};
    if (!weights.empty()) r.weight_path = *weights.begin();
    out.push_back(std::move(r));
  }
  return out;
}

}  // namespace braintrace
