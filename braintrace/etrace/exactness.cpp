// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/exactness.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/etrace/scan_descent.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {
namespace {

using Loss = std::optional<std::string>;  // what is lost; nullopt: nothing

class ExactnessFinder {
 public:
  explicit ExactnessFinder(const ETraceGraph& graph)
      : graph_(graph), info_(graph.module_info) {
    for (const StepState& s : info_.step.states) {
      if (s.kind == StateKind::param || is_hidden(s.kind) || !s.written) continue;
      for (std::size_t k = 0; k < s.in.size(); ++k)
        if (is_float(info_.program().type(s.in[k]).dtype) && !uses(s.in[k]).empty())
          others_.emplace(s.out[k], s.path);
    }
  }

  ParameterExactness of(const ParameterVerdict& v) const {
    if (v.verdict == Verdict::refused) return {v.path, false, v.reason};
    const StepState* used = info_.step.find(v.path);
    if (!used) return {v.path, true, v.reason};
    bool temporal = false;
    const std::vector<ValueId>& leaves = used->in;
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      if (const Loss lost = lost_by(v.path, k, leaves[k])) return {v.path, false, *lost};
      temporal = temporal || !groups_reached({leaves[k]}).empty();
    }
    return {
        v.path, true,
        temporal ? "no cut lies on its way to the future" : "it reaches no hidden state"};
  }

 private:
  std::span<const Use> uses(ValueId v) const { return info_.index->uses(v); }
  const Node& node(std::size_t i) const { return info_.index->node(i); }

  // Everything a derivative flows to, with `skip` not followed.
  std::set<ValueId> reached(const std::vector<ValueId>& from,
                            const std::set<Use>& skip = {}) const {
    const auto follow = [&](Use u) {
      return passes_tangent(*info_.index, u) && !skip.contains(u);
    };
    std::set<ValueId> out;
    for (ValueId v : from)
      for (ValueId r : reach_forward(*info_.index, v, follow)) out.insert(r);
    return out;
  }

  // The groups whose states these values move within the step.
  std::set<std::int64_t> groups_reached(const std::vector<ValueId>& from,
                                        const std::set<Use>& skip = {}) const {
    std::set<std::int64_t> out;
    for (ValueId v : reached(from, skip))
      if (const HiddenVar* h = info_.hidden_at_output(v))
        out.insert(graph_.hid_path_to_group.at(h->path));
    return out;
  }

  Loss through_other_state(const std::vector<ValueId>& from) const {
    for (ValueId v : reached(from))
      if (const auto it = others_.find(v); it != others_.end())
        return fmt::format("{} carries credit but is no hidden state",
                           to_string(it->second));
    return std::nullopt;
  }

  Loss through_while(const std::vector<ValueId>& from) const {
    for (ValueId v : reached(from)) {
      const auto p = info_.index->producer(v);
      if (p && as_while(node(*p)))
        return "what passes a while loop is not credited in reverse mode";
    }
    return std::nullopt;
  }

  // The first of these cuts that has a hidden state beyond it.
  Loss first_cut(const std::vector<Use>& cuts, const std::string& whose) const {
    for (const Use& u : cuts) {
      const Node& n = node(u.node);
      if (groups_reached({n.outputs.begin(), n.outputs.end()}).empty()) continue;
      return fmt::format("the past of {} is cut at {}{}", whose,
                         node_name(info_.program(), n),
                         n.loc ? " at " + to_string(n.loc) : "");
    }
    return std::nullopt;
  }

  const HiddenGroup& group(std::int64_t g) const {
    return graph_.hidden_groups[static_cast<std::size_t>(g)];
  }

  // What the group's transition leaves out.
  Loss lost_by_group(std::int64_t index) const {
    const HiddenGroup& g = group(index);
    const std::string name = path_list(g.hidden_paths());
    if (g.descent && !g.cuts.empty())
      return fmt::format("the past of {} is cut inside its loop", name);
    if (!g.descent)
      if (const Loss cut = first_cut(g.cuts, name)) return cut;
    if (const Loss lost = lost_beside_carry(g)) return lost;
    std::vector<ValueId> own;
    for (const Path& p : g.hidden_paths()) {
      own.push_back(info_.hidden_at(p)->in);
      own.push_back(info_.hidden_at(p)->out);
    }
    for (std::int64_t other : groups_reached(own))
      if (other != index)
        return fmt::format("{} moves {} of another group", name,
                           path_list(group(other).hidden_paths()));
    if (const Loss lost = read_behind_while(g)) return lost;
    return through_other_state(own);
  }

  // What outputs read of old states is credited in reverse mode, which no while loop lets
  // through.
  Loss read_behind_while(const HiddenGroup& g) const {
    std::set<Use> new_values;
    for (const HiddenVar& h : info_.hidden)
      for (const Use& u : uses(h.out)) new_values.insert(u);
    const auto outputs = info_.program().outputs().first(info_.num_var_out);
    for (const Path& p : g.hidden_paths())
      for (ValueId v : reached({info_.hidden_at(p)->in}, new_values)) {
        const auto from = info_.index->producer(v);
        if (!from || !as_while(node(*from))) continue;
        const std::set<ValueId> seen = reached({v}, new_values);
        for (ValueId out : outputs)
          if (seen.contains(out) && !info_.hidden_at_output(out))
            return fmt::format("an output reads the old {} through a while loop",
                               to_string(p));
      }
    return std::nullopt;
  }

  // An opened loop follows its states as carries; on any other way in they are constants.
  Loss lost_beside_carry(const HiddenGroup& g) const {
    if (!g.descent) return std::nullopt;
    std::set<Use> carries;
    for (std::size_t k = 0; k < g.descent->num_carry; ++k)
      carries.insert({g.descent->node, g.descent->num_consts + k});
    for (const Path& p : g.hidden_paths())
      if (!groups_reached({info_.hidden_at(p)->in}, carries).empty())
        return fmt::format("{} is read beside the loop that updates it", to_string(p));
    return std::nullopt;
  }

  Loss lost_by_relation(const HiddenParamOpRelation& r) const {
    if (r.kind == RelationKind::direct && !r.control_flow_context)
      if (const Loss cut = first_cut(r.cuts, r.primitive)) return cut;
    if (r.control_flow_context && !r.cuts.empty())
      return fmt::format("{} is cut inside its loop", r.primitive);
    const std::set<std::int64_t> traced(r.group_indices.begin(), r.group_indices.end());
    const ValueId y =
        r.control_flow_context ? node(r.control_flow_context->node).outputs[0] : r.y;
    for (std::int64_t g : groups_reached({y}))
      if (!traced.contains(g))
        return fmt::format("{} also moves {}, which it is not traced to", r.primitive,
                           path_list(group(g).hidden_paths()));
    for (std::int64_t g : traced)
      if (const Loss lost = lost_by_group(g)) return lost;
    return std::nullopt;
  }

  // The uses of a loop's body are not looked at one by one: the weight must have no
  // other.
  static bool is_used_once(const HiddenParamOpRelation& r, const Trainable& t) {
    return t.prologue.is_identity() &&
           r.control_flow_context->body.index->uses(t.operand).size() == 1;
  }

  Loss lost_by(const Path& path, std::size_t k, ValueId leaf) const {
    std::set<Use> traced;
    for (const HiddenParamOpRelation& r : graph_.hidden_param_op_relations)
      for (const Trainable& t : r.trainables) {
        const auto& all = t.prologue.parameters;
        const bool mine = std::any_of(all.begin(), all.end(), [&](const WeightVar& w) {
          return w.path == path && w.leaf == k;
        });
        if (!mine) continue;
        if (const Loss lost = lost_by_relation(r)) return lost;
        const ScanDescentInfo* loop = r.control_flow_context.get();
        if (loop && !is_used_once(r, t)) return "it is used in several places of a loop";
        const std::size_t n = loop ? loop->node : r.node;
        for (std::size_t i = 0; i < node(n).inputs.size(); ++i)
          if (node(n).inputs[i] == (loop ? leaf : t.operand)) traced.insert({n, i});
      }
    const std::set<std::int64_t> untraced = groups_reached({leaf}, traced);
    if (!untraced.empty())
      return fmt::format("it moves {} on a way that is not traced",
                         path_list(group(*untraced.begin()).hidden_paths()));
    if (const Loss lost = through_other_state({leaf})) return lost;
    return through_while({leaf});
  }

  const ETraceGraph& graph_;
  const ModuleInfo& info_;
  std::map<ValueId, Path> others_;  // written states that are not hidden, by output
};

}  // namespace

std::vector<ParameterExactness> parameter_exactness(const ETraceGraph& graph) {
  const ExactnessFinder finder(graph);
  std::vector<ParameterExactness> out;
  for (const ParameterVerdict& v : graph.verdicts) out.push_back(finder.of(v));
  return out;
}

}  // namespace braintrace
