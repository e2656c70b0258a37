// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/while_terms.h"

#include <algorithm>

#include "braintrace/ops/calculus.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/transforms/lanes.h"

namespace braintrace {

namespace {

bool contains_while(const Node& n) {
  return any_node(n, [](const Node& m) { return as_while(m).has_value(); });
}

}  // namespace

Graph detached_whiles(const Graph& g) {
  if (!has_while(g)) return g;
  const auto builder = Builder::create();
  Values env(g.num_values());
  for (ValueId v : g.inputs()) env[v.index] = builder->input(g.type(v));
  for (const Node& n : g.nodes()) {
    Values in;
    for (ValueId v : n.inputs) {
      const bool cut = contains_while(n) && is_float(g.type(v).dtype);
      in.push_back(cut ? stop_gradient(env[v.index]) : env[v.index]);
    }
    const Values out = builder->record(*n.op, in, n.attrs, n.loc);
    for (std::size_t k = 0; k < out.size(); ++k) env[n.outputs[k].index] = out[k];
  }
  Values outputs;
  for (ValueId v : g.outputs()) outputs.push_back(env[v.index]);
  return builder->finish(outputs);
}

bool RelationWriter::crosses_while() const { return has_while(relation_.tails[tail_]); }

Value RelationWriter::df_through_whiles(const StepValues& v) const {
  return df(v) - df_of(detached_whiles(relation_.tails[tail_]), v);
}

bool has_while_terms(const RuleContext& context) {
  const auto crosses = [](const RelationWriter& r) {
    return !r.relation().control_flow_context && r.crosses_while();
  };
  return std::any_of(context.relations().begin(), context.relations().end(), crosses) ||
         std::any_of(context.dense_relations().begin(), context.dense_relations().end(),
                     crosses);
}

WhileTerms::WhileTerms(const RuleContext& context)
    : context_(context),
      by_position_(context.graph(), FlowOptions{}),
      along_everything_(context.graph(), kEverything) {}

std::vector<ValueId> WhileTerms::reads() const {
  std::vector<ValueId> ids = by_position_.reads();
  for (ValueId v : along_everything_.reads()) ids.push_back(v);
  return ids;
}

LeafGradients WhileTerms::operator()(const StepTerms& t,
                                     const GroupSignals& total) const {
  LeafGradients out;
  const GroupSignals direct = by_position_(t.values(), total);
  for (const RelationWriter& r : context_.relations()) {
    if (r.relation().control_flow_context || !r.crosses_while()) continue;
    const Value& s = direct[static_cast<std::size_t>(r.group().index)];
    const Value ct = sum(r.df_through_whiles(t.values()) * s, {.axes = {-1}});
    add_to(out, r.pull_back(t.values(), r.weight_gradient(t.values(), ct),
                            context_.options().prologue));
  }
  const GroupSignals beside_all = along_everything_(t.values(), total);
  for (const RelationWriter& r : context_.dense_relations()) {
    if (!r.crosses_while()) continue;
    const Value& s = beside_all[static_cast<std::size_t>(r.group().index)];
    for (const WeightVar& w : r.leaves()) {
      Values in;
      for (ValueId v : r.reads()) in.push_back(t.values().at(v));
      in.push_back(t.values().at(w.id));
      if (!is_float(in.back().dtype())) continue;
      const Graph whole = r.leaf_program(w);
      const Value all = sensitivities(whole, in, in.size() - 1)[0];
      const Value around = sensitivities(detached_whiles(whole), in, in.size() - 1)[0];
      add_to(out, leaf_name(w), contracted_last(all - around, s));
    }
  }
  return out;
}

}  // namespace braintrace
