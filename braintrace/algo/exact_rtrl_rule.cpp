// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/exact_rtrl_rule.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/etrace/position_flow.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/axis.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/transforms/lanes.h"

namespace braintrace {
namespace {

// Does a derivative flow from one value to any of the others?
bool flows(const ModuleInfo& info, ValueId from, const std::vector<ValueId>& to) {
  const FlowOptions everything{
      .mixing_is_kept = true, .cross_etp = true, .cross_products = true};
  const Influence all = influence_of(*info.index, std::vector{from},
                                     info.program().type(from).shape, everything);
  return std::any_of(to.begin(), to.end(),
                     [&](ValueId v) { return all.reached.contains(v); });
}

// Credit through states that are not hidden would need sensitivities of their own.
void check_other_states(const ModuleInfo& info) {
  const auto outputs = info.program().outputs();
  std::vector<ValueId> seen(
      outputs.begin(),
      outputs.begin() + static_cast<std::ptrdiff_t>(info.step.num_outputs));
  std::vector<ValueId> sources;
  for (const HiddenVar& h : info.hidden) {
    seen.push_back(h.out);
    sources.push_back(h.in);
  }
  for (const WeightVar& w : info.weights) sources.push_back(w.id);
  for (const StepState& s : info.step.states) {
    if (s.kind == StateKind::param || is_hidden(s.kind) || !s.written) continue;
    for (std::size_t k = 0; k < s.in.size(); ++k) {
      if (!is_float(info.program().type(s.in[k]).dtype)) continue;
      const bool fed = std::any_of(sources.begin(), sources.end(),
                                   [&](ValueId v) { return flows(info, v, {s.out[k]}); });
      BT_REQUIRE_KIND(!fed || !flows(info, s.in[k], seen), ErrorKind::not_supported,
                      fmt::format("ExactRTRL: {} carries credit from step to step but is "
                                  "not a hidden state",
                                  to_string(s.path)));
    }
  }
}

// How a change of the states at entry moves the step's results. The step is written once,
// however often it is asked; a loop of unknown length is written anew each time.
class MovedStates {
 public:
  MovedStates(const Graph& step, const Values& in, const std::vector<std::size_t>& states)
      : step_(step), in_(in), states_(states) {
    if (has_while(step)) return;
    std::vector<bool> active(in.size(), false);
    for (std::size_t i : states) active[i] = true;
    linear_ = linearize(step, active);
    const Values all = inline_graph(linear_->primal, in);
    residuals_.assign(all.end() - static_cast<std::ptrdiff_t>(linear_->num_residuals),
                      all.end());
  }

  Values operator()(const Values& changes) const {
    std::vector<Tangent> tangents(in_.size());
    for (std::size_t i = 0; i < changes.size(); ++i) tangents[states_[i]] = changes[i];
    std::vector<Tangent> moved;
    if (linear_) {
      Values given = residuals_;
      for (const Tangent& t : tangents)
        if (t) given.push_back(*t);
      const Values out = inline_graph(linear_->linear, given);
      auto next = out.begin();
      for (const bool a : linear_->active_out)
        moved.push_back(a ? Tangent(*next++) : std::nullopt);
    } else {
      moved = jvp_values(step_, in_, tangents).tangents;
    }
    Values out;
    for (std::size_t k = 0; k < moved.size(); ++k)
      out.push_back(materialize(moved[k], step_.type(step_.outputs()[k])));
    return out;
  }

 private:
  const Graph& step_;
  const Values& in_;
  const std::vector<std::size_t>& states_;
  std::optional<Linearized> linear_;
  Values residuals_;
};

}  // namespace

ExactRtrlRule::ExactRtrlRule(const RuleContext& context) : LearningRule(context) {
  const ModuleInfo& info = context.graph().module_info;
  check_other_states(info);
  std::vector<ValueId> exits;
  for (const HiddenVar& h : info.hidden) {
    if (!is_float(info.program().type(h.in).dtype)) continue;
    states_.push_back(h);
    exits.push_back(h.out);
  }
  for (const WeightVar& w : info.weights)
    if (is_float(info.program().type(w.id).dtype) && flows(info, w.id, exits))
      leaves_.push_back(w);
  step_ = subgraph(info.program(), info.program().inputs(), exits);
}

std::vector<TraceSlot> ExactRtrlRule::traces() const {
  const ETraceGraph& graph = context().graph();
  std::vector<TraceSlot> out;
  for (const WeightVar& w : leaves_)
    for (const HiddenVar& h : states_) {
      const Type leaf = graph.module_info.program().type(w.id);
      const Shape state = graph.module_info.program().type(h.in).shape;
      out.push_back({.kind = "dense",
                     .key = leaf_name(w) + ":" + to_slashes(h.path),
                     .group = graph.hid_path_to_group.at(h.path),
                     .type = {leaf.dtype, joined({leaf.shape, state})},
                     .parameter = w.path});
    }
  return out;
}

std::vector<ValueId> ExactRtrlRule::reads() const {
  const auto in = context().graph().module_info.program().inputs();
  return {in.begin(), in.end()};
}

std::vector<Value> ExactRtrlRule::roll(StepTerms& t,
                                       const std::vector<Value>& eps) const {
  const auto ids = context().graph().module_info.program().inputs();
  Values in;
  for (ValueId v : ids) in.push_back(t.values().at(v));
  auto place = [&](ValueId v) {
    return static_cast<std::size_t>(std::find(ids.begin(), ids.end(), v) - ids.begin());
  };
  std::vector<std::size_t> states, leaves;
  for (const HiddenVar& h : states_) states.push_back(place(h.in));
  for (const WeightVar& w : leaves_) leaves.push_back(place(w.id));
  const MovedStates moved(step_, in, states);
  const std::vector<Values> now = sensitivities(step_, in, leaves);
  std::vector<Value> out;
  for (const Values& of_leaf : now) {
    Values lanes;
    for (std::size_t i : states)
      lanes.push_back(
          reshape(eps[out.size() + lanes.size()], inserted(in[i].shape(), 0, -1)));
    const Values past = on_lanes(lanes, moved);
    for (std::size_t i = 0; i < of_leaf.size(); ++i)
      out.push_back(of_leaf[i] + reshape(past[i], of_leaf[i].shape()));
  }
  return out;
}

LeafGradients ExactRtrlRule::solve(StepTerms&, const GroupSignals& signals,
                                   std::vector<Value>& eps) const {
  std::map<Path, Value> adjoints;
  for (std::size_t g = 0; g < signals.size(); ++g) {
    const HiddenGroup& group = context().groups()[g];
    const std::vector<Value> parts = group.split_hidden(signals[g]);
    for (std::size_t i = 0; i < parts.size(); ++i)
      adjoints.emplace(group.members[i].path, parts[i]);
  }
  LeafGradients out;
  std::size_t at = 0;
  for (const WeightVar& w : leaves_)
    for (const HiddenVar& h : states_)
      add_to(out, leaf_name(w), contracted_last(eps[at++], adjoints.at(h.path)));
  return out;
}

LeafGradients ExactRtrlRule::history(StepTerms&, const GroupSignals&,
                                     const std::vector<Value>&,
                                     const std::vector<Value>&) const {
  throw InternalError("ExactRTRL meets its signal at entry");
}

}  // namespace braintrace
