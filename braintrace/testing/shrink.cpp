// SPDX-License-Identifier: Apache-2.0
// Looks for the smallest program that still fails.
#include "braintrace/array/rng.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/testing/random_graph.h"

namespace braintrace::testing {
namespace {

// Values of all ids of the program, in definition order.
std::vector<Array> all_values(const Program& p) {
  std::vector<Array> env(p.graph.num_values());
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    env[p.graph.inputs()[i].index] = p.inputs[i];
  for (const Node& n : p.graph.nodes()) {
    std::vector<Array> in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    const std::vector<Array> out = eval_op(*n.op, in, n.attrs);
    for (std::size_t i = 0; i < out.size(); ++i) env[n.outputs[i].index] = out[i];
  }
  return env;
}

// Which values the outputs need, when nodes in `cut` are replaced by their values.
std::vector<bool> needed(const Graph& g, const std::vector<ValueId>& outputs,
                         const std::vector<bool>& cut) {
  std::vector<bool> need(g.num_values(), false);
  for (ValueId v : outputs) need[v.index] = true;
  for (std::size_t i = g.nodes().size(); i-- > 0;) {
    const Node& n = g.nodes()[i];
    bool used = false;
    for (ValueId v : n.outputs) used = used || need[v.index];
    if (!used || cut[i]) continue;
    for (ValueId v : n.inputs) need[v.index] = true;
  }
  return need;
}

// The program without dead nodes and inputs; outputs of cut nodes become inputs.
Program reduced(const Program& p, const std::vector<ValueId>& outputs,
                const std::vector<bool>& cut) {
  const Graph& g = p.graph;
  const std::vector<bool> need = needed(g, outputs, cut);
  const std::vector<Array> values = all_values(p);
  const auto builder = Builder::create();
  std::vector<Value> env(g.num_values());
  std::vector<Array> inputs;
  const auto as_input = [&](ValueId v) {
    if (!need[v.index]) return;
    env[v.index] = builder->input(g.type(v));
    inputs.push_back(values[v.index]);
  };
  for (ValueId v : g.inputs()) as_input(v);
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    const Node& n = g.nodes()[i];
    bool used = false;
    for (ValueId v : n.outputs) used = used || need[v.index];
    if (!used) continue;
    if (cut[i]) {
      for (ValueId v : n.outputs) as_input(v);
      continue;
    }
    std::vector<Value> in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    const std::vector<Value> out = builder->record(*n.op, in, n.attrs, n.loc);
    for (std::size_t k = 0; k < out.size(); ++k) env[n.outputs[k].index] = out[k];
  }
  std::vector<Value> results;
  for (ValueId v : outputs) results.push_back(env[v.index]);
  return {builder->finish(results), inputs};
}

// A sub-graph as a program of its own, on made-up numbers.
Program zoomed(const Graph& sub) {
  std::vector<Array> inputs;
  for (const Type& t : sub.input_types()) {
    const bool real = is_float(t.dtype);
    const RngKey key = rng_key(inputs.size() + 1);
    inputs.push_back(real ? random_uniform(key, t.shape, -1, 1, t.dtype)
                          : Array(t.dtype, t.shape));
  }
  return {sub, inputs};
}

bool zoom(Program& p, const std::function<bool(const Program&)>& fails) {
  for (const Node& n : p.graph.nodes())
    for (const auto& [name, value] : n.attrs.entries()) {
      const auto* sub = std::get_if<GraphPtr>(&value);
      if (!sub) continue;
      Program inner = zoomed(**sub);
      if (!fails(inner)) continue;
      p = std::move(inner);
      return true;
    }
  return false;
}

// One smaller program that still fails, if any.
bool step(Program& p, const std::function<bool(const Program&)>& fails) {
  const std::vector<ValueId> outputs(p.graph.outputs().begin(), p.graph.outputs().end());
  const std::vector<bool> none(p.graph.nodes().size(), false);
  const auto accept = [&](const std::vector<ValueId>& out, const std::vector<bool>& cut) {
    Program smaller = reduced(p, out, cut);
    const bool shorter = smaller.graph.nodes().size() < p.graph.nodes().size() ||
                         out.size() < outputs.size();
    if (!shorter || !fails(smaller)) return false;
    p = std::move(smaller);
    return true;
  };
  if (zoom(p, fails)) return true;
  for (ValueId v : outputs)
    if (outputs.size() > 1 && accept({v}, none)) return true;
  for (const Node& n : p.graph.nodes())  // the program up to this node
    if (accept({n.outputs.begin(), n.outputs.end()}, none)) return true;
  for (std::size_t i = p.graph.nodes().size(); i-- > 0;) {
    std::vector<bool> cut = none;
    cut[i] = true;
    if (accept(outputs, cut)) return true;
  }
  return false;
}

}  // namespace

Program shrink(Program p, const std::function<bool(const Program&)>& fails) {
  while (step(p, fails)) {
  }
  return p;
}

}  // namespace braintrace::testing
