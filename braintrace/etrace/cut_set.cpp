// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/cut_set.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/etrace/relation.h"

namespace braintrace {
namespace {

// The first hidden states at step exit that depend on a node's outputs, in canonical
// order.
std::vector<Path> hidden_beyond(const ModuleInfo& info, std::size_t node) {
  auto before_a_state = [&](Use u) {
    return !info.hidden_at_output(info.index->node(u.node).inputs[u.input]);
  };
  std::set<ValueId> reached;
  for (ValueId v : info.index->node(node).outputs)
    for (ValueId r : reach_forward(*info.index, v, before_a_state)) reached.insert(r);
  std::vector<Path> out;
  for (const HiddenVar& h : info.hidden)
    if (reached.contains(h.out)) out.push_back(h.path);
  return out;
}

}  // namespace

FlowOptions flow_options(const CompileOptions& options) {
  const bool mix = options.include_recurrent_mixing;
  return {.mixing_is_kept = mix || options.mixing == Mixing::sum,
          .cross_etp = mix,
          .cross_products = mix};
}

std::vector<std::size_t> nodes_between(const GraphIndex& index,
                                       const Influence& influence,
                                       std::span<const ValueId> outputs) {
  std::set<ValueId> needed(outputs.begin(), outputs.end());
  std::vector<std::size_t> nodes;
  // Uses are ordered by node, so one backward sweep suffices.
  for (auto it = influence.kept.rbegin(); it != influence.kept.rend();) {
    const std::size_t i = it->node;
    const Node& n = index.node(i);
    const bool wanted = std::any_of(n.outputs.begin(), n.outputs.end(),
                                    [&](ValueId v) { return needed.contains(v); });
    if (wanted) nodes.push_back(i);
    for (; it != influence.kept.rend() && it->node == i; ++it)
      if (wanted) needed.insert(n.inputs[it->input]);
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

std::string node_name(const Graph& g, const Node& n) {
  if (!n.op->etp) return std::string(n.op->name);
  const NodeTypes types = types_of(g, n);
  return std::string(n.op->etp->reference_name({types.in, types.out, n.attrs}));
}

namespace {

class CutCollector {
 public:
  explicit CutCollector(const ModuleInfo& info) : info_(info) {}

  // The entry of one cut; null when no hidden state lies beyond.
  CutEntry* at(const Use& u) {
    if (!beyond_.contains(u.node)) beyond_[u.node] = hidden_beyond(info_, u.node);
    if (beyond_[u.node].empty()) return nullptr;
    CutEntry& c = entries_[u];
    const Node& n = info_.index->node(u.node);
    c.use = u;
    c.op = node_name(info_.program(), n);
    c.where = to_string(n.loc);
    c.weight_path = first_weight_path(info_, n);
    c.to = beyond_[u.node];
    return &c;
  }

  std::vector<CutEntry> take() {
    std::vector<CutEntry> out;
    for (auto& [use, entry] : entries_) out.push_back(std::move(entry));
    return out;
  }

 private:
  const ModuleInfo& info_;
  std::map<Use, CutEntry> entries_;
  std::map<std::size_t, std::vector<Path>> beyond_;  // by node
};

void add_once(std::vector<Path>& list, const Path& p) {
  if (std::find(list.begin(), list.end(), p) == list.end()) list.push_back(p);
}

}  // namespace

std::vector<CutEntry> cut_set(const ModuleInfo& info,
                              const std::vector<HiddenGroup>& groups,
                              const std::vector<HiddenParamOpRelation>& relations) {
  CutCollector cuts(info);
  for (const HiddenGroup& g : groups) {
    if (g.descent) continue;
    for (const Use& u : g.cuts)
      if (CutEntry* c = cuts.at(u))
        for (const Path& p : g.hidden_paths()) add_once(c->from, p);
  }
  for (const HiddenParamOpRelation& r : relations) {
    if (r.kind != RelationKind::direct || r.control_flow_context) continue;
    for (const Use& u : r.cuts)
      if (CutEntry* c = cuts.at(u)) add_once(c->weights, r.path());
  }
  return cuts.take();
}

std::string to_string(const CutEntry& c) {
  std::vector<Path> past = c.from;
  past.insert(past.end(), c.weights.begin(), c.weights.end());
  return fmt::format("{}{}{}: the past of {} is not credited through it to {}", c.op,
                     c.weight_path ? "(" + to_string(*c.weight_path) + ")" : "",
                     c.where.empty() ? "" : " at " + c.where, path_list(past),
                     path_list(c.to));
}

}  // namespace braintrace
