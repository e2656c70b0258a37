// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/reuse_loop_values.h"

#include <algorithm>
#include <map>

#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/passes/rewrite.h"
#include "braintrace/passes/scan_split_impl.h"

namespace braintrace {
namespace {

// A value of a loop's body, stacked.
struct LoopValue {
  std::size_t loop = 0;  // index of the node
  ValueId value;
};

struct Reuse {
  std::map<std::size_t, std::vector<ValueId>> stacked;  // by loop: in addition
  std::map<std::size_t, LoopValue> taken;               // by node: its result
};

// The node of the body that does to `v` what n does to its stack, or null.
const Node* same_in_body(const Graph& body, const Node& n, ValueId v) {
  for (const Node& m : body.nodes())
    if (m.op == n.op && m.inputs.size() == 1 && m.inputs[0] == v && m.attrs == n.attrs)
      return &m;
  return nullptr;
}

Reuse find(const Graph& g) {
  const LoweredGraph lowered(g);
  std::vector<std::optional<LoopValue>> from(g.num_values());
  Reuse found;
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    const Node& n = g.nodes()[i];
    if (const auto scan = as_scan(n)) {
      for (std::size_t y = scan->num_carry; y < n.outputs.size(); ++y)
        from[n.outputs[y].index] = {i, scan->body->outputs()[y]};
      continue;
    }
    const Lowering& l = lowered.lowering(n);
    if (!std::holds_alternative<lowering::Elementwise>(l) || is_cheap(l)) continue;
    if (n.inputs.size() != 1 || lowered.uses(n.inputs[0]) != 1) continue;
    const auto& stack = from[n.inputs[0].index];
    if (!stack || num_bytes(g.type(n.outputs[0])) > num_bytes(g.type(n.inputs[0])))
      continue;
    const Graph& body = *as_scan(g.nodes()[stack->loop])->body;
    const Node* m = same_in_body(body, n, stack->value);
    if (!m) continue;
    found.stacked[stack->loop].push_back(m->outputs[0]);
    found.taken[i] = {stack->loop, m->outputs[0]};
  }
  return found;
}

}  // namespace

Graph reuse_loop_values(const Graph& g) {
  const Reuse found = find(g);
  std::map<std::pair<std::size_t, ValueId>, Value> stacks;
  RewriteRules rules;
  rules.sub_graph = reuse_loop_values;
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value> env) -> Rewrite {
    if (const auto t = found.taken.find(i); t != found.taken.end())
      return Values{stacks.at({t->second.loop, t->second.value})};
    const auto added = found.stacked.find(i);
    if (added == found.stacked.end()) return std::nullopt;
    const Node& n = g.nodes()[i];
    Values in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    Values out = b.record(*n.op, in, scan_attrs_with_ys(n, added->second), n.loc);
    for (std::size_t k = 0; k < added->second.size(); ++k)
      stacks[{i, added->second[k]}] = out[n.outputs.size() + k];
    out.resize(n.outputs.size());
    return out;
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
