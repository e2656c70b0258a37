// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

Attrs with_sub_graphs(const Attrs& attrs, const RewriteRules& rules) {
  if (!rules.sub_graph) return attrs;
  Attrs out = attrs;
  for (const auto& [name, value] : attrs.entries())
    if (const auto* sub = std::get_if<GraphPtr>(&value))
      out.set(name, std::make_shared<const Graph>(rules.sub_graph(**sub)));
  return out;
}

std::vector<Value> copy_node(Builder& b, const Graph& g, const Node& n,
                             std::span<const Value> in, const RewriteRules& rules) {
  const Attrs attrs = with_sub_graphs(n.attrs, rules);
  const Site site{*n.op, in, {}, attrs, n.loc};
  if (rules.node)
    if (Rewrite r = rules.node(b, site)) return *r;
  std::vector<Value> out = b.copy(g, n, in, attrs);
  if (rules.copied) rules.copied(Site{*n.op, in, out, attrs, n.loc});
  return out;
}

}  // namespace

Graph rewrite(const Graph& g, const RewriteRules& rules) {
  const auto builder = Builder::create();
  std::vector<Value> env(g.num_values());
  for (ValueId v : g.inputs()) env[v.index] = builder->input(g.type(v));
  std::vector<Value> in;
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    if (i < rules.skip.size() && rules.skip[i]) continue;
    const Node& n = g.nodes()[i];
    in.clear();
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    Rewrite changed = rules.old_node ? rules.old_node(*builder, i, env) : std::nullopt;
    const std::vector<Value> out =
        changed ? *changed : copy_node(*builder, g, n, in, rules);
    BT_INVARIANT(out.size() == n.outputs.size());
    for (std::size_t k = 0; k < out.size(); ++k) {
      BT_INVARIANT(out[k].type() == g.type(n.outputs[k]));
      env[n.outputs[k].index] = out[k];
    }
  }
  std::vector<Value> outputs;
  for (ValueId v : g.outputs()) outputs.push_back(env[v.index]);
  return builder->finish(outputs);
}

}  // namespace braintrace
