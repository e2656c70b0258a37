// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/signals.h"

#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

Value swap_last(const Value& v) {
  Ints axes = iota_ints(v.rank());
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return transpose(v, axes);
}

}  // namespace

DirectAdjoint::DirectAdjoint(const ETraceGraph& graph, const FlowOptions& flow)
    : graph_(graph) {
  const ModuleInfo& info = graph.module_info;
  for (const HiddenGroup& g : graph.hidden_groups) {
    std::vector<Edge>& edges = edges_.emplace_back();
    if (g.members.size() < 2 || g.descent) continue;
    for (std::size_t a = 0; a < g.members.size(); ++a) {
      const ValueId source = g.members[a].out;
      const auto stop = [&](ValueId v) {
        return v != source && info.hidden_at_output(v) != nullptr;
      };
      const Influence inf = influence_of(*info.index, std::vector{source},
                                         g.members[a].varshape, flow, stop);
      Edge e{.member = a, .to = {}, .program = {}, .out = source};
      std::vector<ValueId> outs;
      for (std::size_t b = 0; b < g.members.size(); ++b)
        if (b != a && inf.reached.contains(g.members[b].out)) {
          e.to.push_back(b);
          outs.push_back(g.members[b].out);
        }
      if (outs.empty()) continue;
      e.program =
          extract(*info.index, nodes_between(*info.index, inf, outs), std::vector{source},
                  outs, [&](Use u) { return inf.kept.contains(u); });
      e.program.graph = detached_whiles(e.program.graph);
      edges.push_back(std::move(e));
    }
  }
}

std::vector<ValueId> DirectAdjoint::reads() const {
  std::set<ValueId> ids;
  for (const std::vector<Edge>& edges : edges_)
    for (const Edge& e : edges) {
      ids.insert(e.program.constants.begin(), e.program.constants.end());
      ids.insert(e.out);
    }
  return {ids.begin(), ids.end()};
}

GroupSignals DirectAdjoint::operator()(const StepValues& values,
                                       const GroupSignals& total) const {
  GroupSignals out = total;
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    if (edges_[i].empty()) continue;
    const HiddenGroup& g = graph_.hidden_groups[i];
    const std::vector<Value> parts = g.split_hidden(total[i]);
    std::vector<Value> direct = parts;
    for (const Edge& e : edges_[i]) {
      std::vector<Value> in;
      for (ValueId v : e.program.constants) in.push_back(values.at(v));
      in.push_back(values.at(e.out));
      std::vector<bool> active(in.size(), false);
      active.back() = true;
      std::vector<Tangent> ct;
      for (std::size_t b : e.to) ct.emplace_back(parts[b]);
      const VjpResult r = vjp_values(e.program.graph, active, in, ct);
      if (const Tangent& back = r.cotangents.back())
        direct[e.member] = direct[e.member] - *back;
    }
    out[i] = g.concat_hidden(direct);
  }
  return out;
}

namespace {

// Has a sample of this group several positions that feedback may mix?
bool has_units(const ETraceGraph& graph, const HiddenGroup& g) {
  return g.varshape().size() > (graph.options.batched ? 1u : 0u);
}

}  // namespace

FeedbackMatrices draw_feedback(const ETraceGraph& graph, std::uint64_t key) {
  FeedbackMatrices out;
  for (const HiddenParamOpRelation& r : graph.hidden_param_op_relations)
    for (std::int64_t g : r.group_indices) {
      if (out.contains(g)) continue;
      const HiddenGroup& group = graph.hidden_groups[static_cast<std::size_t>(g)];
      const std::int64_t w = has_units(graph, group) ? group.varshape().back() : 1;
      const DType dtype =
          graph.module_info.program()
              .type(graph.module_info.hidden_at(group.members[0].path)->in)
              .dtype;
      const RngKey k = fold_in(rng_key(key), static_cast<std::uint64_t>(g));
      out[g] = (Value(random_normal(k, {w, w}, dtype)) * 0.1).array();
    }
  return out;
}

GroupSignals random_feedback(const ETraceGraph& graph, const FeedbackMatrices& feedback,
                             const GroupSignals& signals) {
  std::set<std::int64_t> related;
  for (const HiddenParamOpRelation& r : graph.hidden_param_op_relations)
    related.insert(r.group_indices.begin(), r.group_indices.end());
  GroupSignals out = signals;
  for (std::int64_t g : related) {
    const auto it = feedback.find(g);
    BT_REQUIRE_KIND(it != feedback.end(), ErrorKind::runtime,
                    fmt::format("random_feedback: group {} has no feedback matrix", g));
    const Value& given = signals[static_cast<std::size_t>(g)];  // (..., w, S)
    const bool units = has_units(graph, graph.hidden_groups[static_cast<std::size_t>(g)]);
    const Value s = units ? given : expand_dims(given, -2);
    const Value norm = sqrt(sum(s * s, {.axes = {-2}, .keepdims = true}));
    const Value unit = s / (norm + 1e-8);
    // s'[.., k, j] = sum_l unit[.., l, j] B[l, k]
    const Value last = swap_last(unit);  // (..., S, w)
    const Value sent =
        dot_general(last, Value(it->second.astype(s.dtype())),
                    {.lhs_contract = {last.rank() - 1}, .rhs_contract = {0}});
    out[static_cast<std::size_t>(g)] = reshape(swap_last(sent), given.shape());
  }
  return out;
}

namespace {

// One number per position, or fewer that are repeated: (B, 1) is one per sample. Read so
// before the last axis could stand for the states of a position.
bool is_per_position(const Shape& m, const Shape& varshape) {
  return !m.empty() && m.size() == varshape.size() && broadcasts_to(m, varshape);
}

}  // namespace

void check_modulator(const ETraceGraph& graph, const Shape& modulator) {
  for (const HiddenGroup& g : graph.hidden_groups) {
    Shape target = g.varshape();
    target.push_back(g.num_state());
    BT_REQUIRE(
        is_per_position(modulator, g.varshape()) || broadcasts_to(modulator, target),
        fmt::format("modulator: shape {} does not fit group {} of shape {}",
                    to_string(modulator), g.index, to_string(target)));
  }
}

GroupSignals modulated(const ETraceGraph& graph, const Value& modulator,
                       const GroupSignals& signals) {
  check_modulator(graph, modulator.shape());
  GroupSignals out;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    Value m = astype(modulator, signals[i].dtype());
    if (is_per_position(m.shape(), graph.hidden_groups[i].varshape()))
      m = expand_dims(m, -1);
    out.push_back(broadcast_to(m, signals[i].shape()));
  }
  return out;
}

GroupSignals by_group(const ETraceGraph& graph, const std::vector<Value>& per_state) {
  std::map<Path, Value> by_path;
  for (std::size_t i = 0; i < per_state.size(); ++i)
    by_path.emplace(graph.module_info.hidden[i].path, per_state[i]);
  GroupSignals out;
  for (const HiddenGroup& g : graph.hidden_groups) {
    std::vector<Value> members;
    for (const Path& p : g.hidden_paths()) members.push_back(by_path.at(p));
    out.push_back(g.concat_hidden(members));
  }
  return out;
}

}  // namespace braintrace
