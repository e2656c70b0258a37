// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/old_states.h"

#include <set>

#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/calculus.h"

namespace braintrace {
namespace {

// Places among the inputs of the program.
std::vector<std::size_t> hidden_inputs(const LossProgram& p) {
  std::vector<std::size_t> out;
  const std::vector<Type> types = p.graph.input_types();
  for (std::size_t k = 0; k < p.leaves.size(); ++k)
    if (is_hidden(p.leaves[k].state->kind()) && is_float(types[p.num_args + k].dtype))
      out.push_back(p.num_args + k);
  return out;
}

std::vector<bool> from_old_states(const LossProgram& p, const Graph& g) {
  std::vector<ValueId> seeds;
  for (std::size_t i : hidden_inputs(p)) seeds.push_back(g.inputs()[i]);
  return depends_on(g, seeds);
}

// The loss with the new states as inputs behind the others, and with them those further
// outputs that old states do not move.
struct HeldLoss {
  Graph graph;
  std::vector<std::size_t> given;  // outputs of the program
};

HeldLoss held_loss(const LossProgram& p, const Graph& g) {
  HeldLoss held;
  const std::set<ValueId> inputs_of(g.inputs().begin(), g.inputs().end());
  for (std::size_t i : p.new_states)
    if (!inputs_of.contains(g.outputs()[i])) held.given.push_back(i);
  const std::vector<bool> moves = from_old_states(p, g);
  for (std::size_t i = p.graph.outputs().size(); i < g.outputs().size(); ++i)
    if (!moves[g.outputs()[i].index]) held.given.push_back(i);
  std::vector<ValueId> inputs(g.inputs().begin(), g.inputs().end());
  for (std::size_t i : held.given) inputs.push_back(g.outputs()[i]);
  held.graph = subgraph(g, inputs, g.outputs().first(1));
  return held;
}

}  // namespace

void drop_unread_old_states(LossProgram& p) {
  if (p.new_states.empty()) return;
  const Graph held = held_loss(p, p.graph).graph;
  if (p.has_loss && from_old_states(p, held)[held.outputs()[0].index]) return;
  const std::size_t n = p.graph.outputs().size() - p.new_states.size();
  p.graph = subgraph(p.graph, p.graph.inputs(), p.graph.outputs().first(n));
  p.new_states.clear();
}

std::vector<Value> old_state_adjoints(const LossProgram& p, const Graph& g,
                                      std::span<const HiddenVar> hidden,
                                      const std::vector<Value>& in,
                                      const std::vector<Value>& outs,
                                      const Value& weight) {
  BT_INVARIANT(!p.new_states.empty());
  const HeldLoss held = held_loss(p, g);
  std::vector<Value> values = in;
  for (std::size_t i : held.given) values.push_back(outs[i]);
  std::vector<bool> active(values.size(), false);
  for (std::size_t i : hidden_inputs(p)) active[i] = true;
  const VjpResult r =
      vjp_values(held.graph, active, values, std::vector<Tangent>{weight});
  std::vector<Value> out;
  for (const HiddenVar& h : hidden) {
    std::size_t at = p.num_args;
    for (const ProgramLeaf& leaf : p.leaves) {
      if (leaf.state == h.state) break;
      ++at;
    }
    BT_INVARIANT(at < p.first_perturbation());
    out.push_back(materialize(r.cotangents[at], in[at].type()));
  }
  return out;
}

}  // namespace braintrace
