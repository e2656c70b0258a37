// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/cut_set.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/etrace/weight_source.h"

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

std::vector<CutEntry> cut_set(const ModuleInfo& info,
                              const std::vector<HiddenGroup>& groups) {
  std::map<Use, CutEntry> entries;
  std::map<std::size_t, std::vector<Path>> beyond;  // by node
  for (const HiddenGroup& g : groups) {
    for (const Use& u : g.cuts) {
      if (!beyond.contains(u.node)) beyond[u.node] = hidden_beyond(info, u.node);
      if (beyond[u.node].empty()) continue;
      const Node& n = info.index->node(u.node);
      CutEntry& c = entries[u];
      c.use = u;
      c.op = node_name(info.program(), n);
      c.where = to_string(n.loc);
      c.weight_path = first_weight_path(info, n);
      c.to = beyond[u.node];
      const std::vector<Path> paths = g.hidden_paths();
      c.from.insert(c.from.end(), paths.begin(), paths.end());
    }
  }
  std::vector<CutEntry> out;
  for (auto& [use, entry] : entries) out.push_back(std::move(entry));
  return out;
}

std::string to_string(const CutEntry& c) {
  return fmt::format("{}{}{}: the past of {} is not credited through it to {}", c.op,
                     c.weight_path ? "(" + to_string(*c.weight_path) + ")" : "",
                     c.where.empty() ? "" : " at " + c.where, path_list(c.from),
                     path_list(c.to));
}

}  // namespace braintrace
