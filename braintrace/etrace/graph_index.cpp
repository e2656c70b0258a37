// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/graph_index.h"

#include <map>
#include <set>

#include "braintrace/ir/builder.h"

namespace braintrace {

GraphIndex::GraphIndex(Graph g)
    : g_(std::move(g)), producer_(g_.num_values(), -1), uses_(g_.num_values()) {
  for (std::size_t i = 0; i < g_.nodes().size(); ++i) {
    const Node& n = g_.nodes()[i];
    for (std::size_t k = 0; k < n.inputs.size(); ++k)
      uses_[n.inputs[k].index].push_back({i, k});
    for (ValueId v : n.outputs) producer_[v.index] = static_cast<std::int64_t>(i);
  }
}

std::optional<std::size_t> GraphIndex::producer(ValueId v) const {
  const std::int64_t p = producer_[v.index];
  return p < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(p));
}

bool passes_tangent(const GraphIndex& index, Use u) {
  const Node& n = index.node(u.node);
  return !has(n.op->traits, Trait::stops_gradient) &&
         !has(n.op->traits, Trait::no_tangent) &&
         is_float(index.graph().type(n.inputs[u.input]).dtype);
}

SubProgram extract(const GraphIndex& index, std::span<const std::size_t> nodes,
                   std::span<const ValueId> arguments, std::span<const ValueId> outputs,
                   const std::function<bool(Use)>& is_variable) {
  const Graph& g = index.graph();
  std::set<ValueId> variables(arguments.begin(), arguments.end());
  for (std::size_t i : nodes)
    variables.insert(index.node(i).outputs.begin(), index.node(i).outputs.end());

  SubProgram sub;
  std::set<ValueId> seen;
  auto need_constant = [&](ValueId v) {
    if (seen.insert(v).second) sub.constants.push_back(v);
  };
  auto is_inner = [&](Use u) {
    return is_variable(u) && variables.contains(index.node(u.node).inputs[u.input]);
  };
  for (std::size_t i : nodes)
    for (std::size_t k = 0; k < index.node(i).inputs.size(); ++k)
      if (!is_inner({i, k})) need_constant(index.node(i).inputs[k]);
  for (ValueId v : outputs)
    if (!variables.contains(v)) need_constant(v);

  const auto builder = Builder::create();
  std::map<ValueId, Value> constant, variable;
  for (ValueId v : sub.constants) constant[v] = builder->input(g.type(v));
  for (ValueId v : arguments) variable[v] = builder->input(g.type(v));
  for (std::size_t i : nodes) {
    const Node& n = index.node(i);
    std::vector<Value> in;
    for (std::size_t k = 0; k < n.inputs.size(); ++k)
      in.push_back(is_inner({i, k}) ? variable.at(n.inputs[k])
                                    : constant.at(n.inputs[k]));
    const std::vector<Value> out = builder->record(*n.op, in, n.attrs, n.loc);
    for (std::size_t k = 0; k < out.size(); ++k) variable[n.outputs[k]] = out[k];
  }
  std::vector<Value> results;
  for (ValueId v : outputs)
    results.push_back(variables.contains(v) ? variable.at(v) : constant.at(v));
  sub.graph = builder->finish(results);
  return sub;
}

std::vector<ValueId> reach_forward(const GraphIndex& index, ValueId v,
                                   const std::function<bool(Use)>& follow) {
  std::vector<ValueId> reached = {v};
  std::set<ValueId> seen = {v};
  for (std::size_t at = 0; at < reached.size(); ++at) {
    for (const Use& u : index.uses(reached[at])) {
      if (!follow(u)) continue;
      for (ValueId out : index.node(u.node).outputs)
        if (seen.insert(out).second) reached.push_back(out);
    }
  }
  return reached;
}

NodeTypes types_of(const Graph& g, const Node& n) {
  return {g.types_of(n.inputs), g.types_of(n.outputs)};
}

bool is_structural_etp(const Node& n) {
  return n.op->etp && !n.op->etp->gradient_enabled;
}

}  // namespace braintrace
