// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/cut_set.h"

#include <algorithm>
#include <map>
#include <set>

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
  if (!n.op->etp || !n.op->etp->reference_name) return std::string(n.op->name);
  const NodeTypes types = types_of(g, n);
  return std::string(n.op->etp->reference_name({types.in, types.out, n.attrs}));
}

namespace {

// Joins or rearranges entries without computing with them.
bool only_moves(const Graph& g, const Node& n) {
  if (n.op->etp || !n.op->lower) return false;
  const NodeTypes types = types_of(g, n);
  const Lowering l = n.op->lower({types.in, types.out, n.attrs});
  return std::holds_alternative<lowering::Concatenate>(l) ||
         std::holds_alternative<lowering::Reshape>(l) ||
         std::holds_alternative<lowering::Transpose>(l) ||
         std::holds_alternative<lowering::Slice>(l) ||
         std::holds_alternative<lowering::Pad>(l);
}

// The nodes a person would name for a cut: products that read what the cut op only moves,
// as a matrix product does with [x, h], and the cut op itself for every other reader.
std::set<std::size_t> named_nodes(const ModuleInfo& info, std::size_t cut) {
  std::set<std::size_t> named;
  std::vector<std::size_t> open = {cut};
  std::set<std::size_t> seen = {cut};
  for (std::size_t at = 0; at < open.size(); ++at) {
    const Node& n = info.index->node(open[at]);
    if (!only_moves(info.program(), n)) {
      const bool product = is_structural_etp(n) || is_product(info.program(), n);
      named.insert(product ? open[at] : cut);
      continue;
    }
    for (ValueId v : n.outputs) {
      if (info.hidden_at_output(v)) named.insert(cut);
      for (const Use& u : info.index->uses(v))
        if (seen.insert(u.node).second) open.push_back(u.node);
    }
  }
  return named;
}

class CutCollector {
 public:
  explicit CutCollector(const ModuleInfo& info) : info_(info) {}

  // The entries of one cut: none when no hidden state lies beyond.
  std::vector<CutEntry*> at(const Use& u) {
    if (!named_.contains(u.node)) named_[u.node] = named_nodes(info_, u.node);
    std::vector<CutEntry*> out;
    for (const std::size_t i : named_[u.node]) {
      if (!beyond_.contains(i)) beyond_[i] = hidden_beyond(info_, i);
      if (beyond_[i].empty()) continue;
      CutEntry& c = entries_[{u, i}];
      const Node& n = info_.index->node(i);
      c.use = u;
      c.op = node_name(info_.program(), n);
      c.where = to_string(n.loc);
      c.weight_path = first_weight_path(info_, n);
      c.to = beyond_[i];
      out.push_back(&c);
    }
    return out;
  }

  std::vector<CutEntry> take() {
    std::vector<CutEntry> out;
    for (auto& [key, entry] : entries_) out.push_back(std::move(entry));
    return out;
  }

 private:
  const ModuleInfo& info_;
  std::map<std::pair<Use, std::size_t>, CutEntry> entries_;  // by cut and named node
  std::map<std::size_t, std::vector<Path>> beyond_;
  std::map<std::size_t, std::set<std::size_t>> named_;
};

// Where a group's influence, still position by position, enters states of other groups:
// the last op on the way.
std::vector<Use> uses_into_others(const ModuleInfo& info, const HiddenGroup& g) {
  const Influence inf =
      influence_of(*info.index, g.hidden_invars(), g.varshape(), FlowOptions{});
  std::vector<Use> out;
  for (const HiddenVar& h : info.hidden) {
    if (g.contains(h.path) || !inf.reached.contains(h.out)) continue;
    const std::size_t node = *info.index->producer(h.out);
    for (std::size_t k = 0; k < info.index->node(node).inputs.size(); ++k)
      if (inf.kept.contains({node, k})) out.push_back({node, k});
  }
  return out;
}

void add_once(std::vector<Path>& list, const Path& p) {
  if (std::find(list.begin(), list.end(), p) == list.end()) list.push_back(p);
}

bool feeds_directly(const HiddenParamOpRelation& r, const HiddenGroup& g) {
  return r.kind == RelationKind::direct && !r.control_flow_context &&
         std::find(r.group_indices.begin(), r.group_indices.end(), g.index) !=
             r.group_indices.end();
}

void add_weights(CutEntry& c, const HiddenParamOpRelation& r) {
  add_once(c.weights, r.path());
  for (const Trainable& t : r.trainables)
    for (const WeightVar& w : t.prologue.parameters) add_once(c.weights, w.path);
}

}  // namespace

std::vector<CutEntry> cut_set(const ModuleInfo& info,
                              const std::vector<HiddenGroup>& groups,
                              const std::vector<HiddenParamOpRelation>& relations) {
  CutCollector cuts(info);
  for (const HiddenGroup& g : groups) {
    if (g.descent) continue;
    for (const Use& u : g.cuts)
      for (CutEntry* c : cuts.at(u))
        for (const Path& p : g.hidden_paths()) add_once(c->from, p);
    if (groups.size() == 1) continue;
    for (const Use& u : uses_into_others(info, g))
      for (CutEntry* c : cuts.at(u)) {
        for (const Path& p : g.hidden_paths()) add_once(c->from, p);
        for (const HiddenParamOpRelation& r : relations)
          if (feeds_directly(r, g)) add_weights(*c, r);
      }
  }
  for (const HiddenParamOpRelation& r : relations) {
    if (r.kind != RelationKind::direct || r.control_flow_context) continue;
    for (const Use& u : r.cuts)
      for (CutEntry* c : cuts.at(u)) add_weights(*c, r);
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
