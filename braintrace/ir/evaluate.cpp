// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/evaluate.h"

#include <fmt/format.h>

#include "braintrace/ir/op_def.h"

namespace braintrace {
namespace {

void check_inputs(const Graph& g, std::span<const Array> inputs) {
  BT_REQUIRE(inputs.size() == g.inputs().size(),
             fmt::format("eval_graph: the program has {} inputs, got {}",
                         g.inputs().size(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Type want = g.type(g.inputs()[i]), got = type_of(inputs[i]);
    BT_REQUIRE_KIND(want == got, ErrorKind::type,
                    fmt::format("eval_graph: input {} must be {}, got {}", i,
                                to_string(want), to_string(got)));
  }
}

// Index of the last node that reads each value; outputs live to the end.
std::vector<std::size_t> last_uses(const Graph& g) {
  std::vector<std::size_t> last(g.num_values(), 0);
  for (std::size_t i = 0; i < g.nodes().size(); ++i)
    for (ValueId v : g.nodes()[i].inputs) last[v.index] = i;
  for (ValueId v : g.outputs()) last[v.index] = g.nodes().size();
  return last;
}

}  // namespace

std::vector<Array> eval_op(const OpDef& op, std::span<const Array> inputs,
                           const Attrs& attrs) {
  std::vector<Array> in;
  std::vector<Type> types;
  for (const Array& a : inputs) {
    in.push_back(a.contiguous());
    types.push_back(type_of(a));
  }
  std::vector<Array> out;
  for (const Type& t : infer_types(op, types, attrs))
    out.push_back(Array::uninitialized(t.dtype, t.shape));
  BT_INVARIANT(op.eval);
  op.eval({op, in, out, attrs});
  return out;
}

std::vector<Array> eval_graph(const Graph& g, std::span<const Array> inputs,
                              const NodeObserver& observe) {
  check_inputs(g, inputs);
  const std::vector<std::size_t> last = last_uses(g);
  std::vector<Array> env(g.num_values());
  for (std::size_t i = 0; i < inputs.size(); ++i) env[g.inputs()[i].index] = inputs[i];
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    const Node& n = g.nodes()[i];
    std::vector<Array> in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    std::vector<Array> out = eval_op(*n.op, in, n.attrs);
    if (observe) observe(n, out);
    for (std::size_t k = 0; k < out.size(); ++k)
      env[n.outputs[k].index] = std::move(out[k]);
    for (ValueId v : n.inputs)
      if (last[v.index] == i) env[v.index] = Array();
  }
  std::vector<Array> results;
  for (ValueId v : g.outputs()) results.push_back(env[v.index]);
  return results;
}

}  // namespace braintrace
