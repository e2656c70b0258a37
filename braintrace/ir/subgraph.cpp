// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/subgraph.h"

#include "braintrace/ir/builder.h"

namespace braintrace {
namespace {

// By node: true when its outputs are needed and not given.
std::vector<bool> needed_nodes(const Graph& g, const std::vector<bool>& given,
                               std::span<const ValueId> outputs) {
  std::vector<bool> wanted(g.num_values(), false), needed(g.nodes().size(), false);
  for (ValueId v : outputs) wanted[v.index] = true;
  for (std::size_t i = g.nodes().size(); i-- > 0;) {
    const Node& n = g.nodes()[i];
    for (ValueId v : n.outputs)
      needed[i] = needed[i] || (wanted[v.index] && !given[v.index]);
    if (!needed[i]) continue;
    for (ValueId v : n.inputs) wanted[v.index] = true;
  }
  return needed;
}

}  // namespace

std::vector<bool> depends_on(const Graph& g, std::span<const ValueId> seeds) {
  std::vector<bool> reached(g.num_values(), false);
  for (ValueId v : seeds) reached[v.index] = true;
  for (const Node& n : g.nodes()) {
    bool any = false;
    for (ValueId v : n.inputs) any = any || reached[v.index];
    if (!any) continue;
    for (ValueId v : n.outputs) reached[v.index] = true;
  }
  return reached;
}

Graph subgraph(const Graph& g, std::span<const ValueId> inputs,
               std::span<const ValueId> outputs) {
  const auto builder = Builder::create();
  std::vector<Value> env(g.num_values());
  std::vector<bool> given(g.num_values(), false), known(g.num_values(), false);
  for (ValueId v : inputs) {
    env[v.index] = builder->input(g.type(v));
    given[v.index] = known[v.index] = true;
  }
  const std::vector<bool> needed = needed_nodes(g, given, outputs);
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    if (!needed[i]) continue;
    const Node& n = g.nodes()[i];
    std::vector<Value> in;
    for (ValueId v : n.inputs) {
      BT_INVARIANT(known[v.index]);
      in.push_back(env[v.index]);
    }
    const std::vector<Value> out = builder->record(*n.op, in, n.attrs, n.loc);
    for (std::size_t k = 0; k < out.size(); ++k) {
      if (given[n.outputs[k].index]) continue;
      env[n.outputs[k].index] = out[k];
      known[n.outputs[k].index] = true;
    }
  }
  std::vector<Value> results;
  for (ValueId v : outputs) {
    BT_INVARIANT(known[v.index]);
    results.push_back(env[v.index]);
  }
  return builder->finish(results);
}

}  // namespace braintrace
