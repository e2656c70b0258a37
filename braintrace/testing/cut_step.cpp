// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "braintrace/etrace/weight_source.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/testing/cut_step_impl.h"

namespace braintrace::testing {
namespace {

Value fixed(const Value& v) { return is_float(v.dtype()) ? stop_gradient(v) : v; }

// Without what the outputs do not need.
Graph trimmed(const Graph& g) { return subgraph(g, g.inputs(), g.outputs()); }

}  // namespace

CutStep::CutStep(const ETraceGraph& graph) : graph_(graph), info_(graph.module_info) {
  const auto all = info_.program().outputs();
  const std::size_t n = info_.num_var_out + info_.num_var_state;
  const std::vector<ValueId> outputs(all.begin(),
                                     all.begin() + static_cast<std::ptrdiff_t>(n));
  plain = subgraph(info_.program(), info_.program().inputs(), outputs);
  std::vector<Type> types;
  for (const HiddenVar& h : info_.hidden) types.push_back(info_.program().type(h.out));
  const auto around = [this](const Values&) -> OnUse {
    return [this](Use u, const Value& v) { return is_while(u) ? fixed(v) : v; };
  };
  perturbed = rewritten(types, outputs, around, [this](const Values& p) -> OnResult {
    return [this, p](ValueId v, const Value& x) {
      for (std::size_t h = 0; h < info_.hidden.size(); ++h)
        if (info_.hidden[h].out == v && is_float(x.dtype())) return x + p[h];
      return x;
    };
  });
  const std::vector<ValueId> results(
      outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(info_.num_var_out));
  reads_old = rewritten({}, results, around, [this](const Values&) -> OnResult {
    return [this](ValueId v, const Value& x) {
      return info_.hidden_at_output(v) ? fixed(x) : x;
    };
  });
  for (const HiddenGroup& g : graph.hidden_groups) {
    BT_REQUIRE_KIND(!g.descent, ErrorKind::not_supported,
                    "cut_bptt: the step has an opened loop; compile it with a larger "
                    "scan_unroll_limit");
    add_group(g);
  }
  for (std::size_t r = 0; r < graph.hidden_param_op_relations.size(); ++r) add_feeds(r);
}

bool CutStep::is_while(Use u) const {
  return any_node(info_.index->node(u.node),
                  [](const Node& n) { return as_while(n).has_value(); });
}

Graph CutStep::rewritten(const std::vector<Type>& more,
                         const std::vector<ValueId>& outputs,
                         const std::function<OnUse(const Values&)>& on_use,
                         const std::function<OnResult(const Values&)>& on_result) const {
  const Graph& g = info_.program();
  const auto builder = Builder::create();
  Values env(g.num_values()), given;
  for (ValueId v : g.inputs()) env[v.index] = builder->input(g.type(v));
  for (const Type& t : more) given.push_back(builder->input(t));
  const OnUse use = on_use ? on_use(given) : OnUse{};
  const OnResult result = on_result ? on_result(given) : OnResult{};
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    const Node& n = g.nodes()[i];
    Values in;
    for (std::size_t k = 0; k < n.inputs.size(); ++k) {
      const Value& v = env[n.inputs[k].index];
      in.push_back(use ? use({i, k}, v) : v);
    }
    const Values out = builder->record(*n.op, in, n.attrs, n.loc);
    for (std::size_t k = 0; k < out.size(); ++k)
      env[n.outputs[k].index] = result ? result(n.outputs[k], out[k]) : out[k];
  }
  Values results;
  for (ValueId v : outputs) results.push_back(env[v.index]);
  return trimmed(builder->finish(results));
}

Graph CutStep::edges_of(const HiddenGroup& g, const std::set<Use>& cuts) const {
  std::vector<Type> types;
  const std::vector<ValueId> outs = g.hidden_outvars();
  for (ValueId v : outs) types.push_back(info_.program().type(v));
  const auto on_use = [&](const Values& changes) -> OnUse {
    return [&, changes](Use u, const Value& v) {
      const ValueId id = info_.index->node(u.node).inputs[u.input];
      if (cuts.contains(u) || is_while(u)) return fixed(v);
      if (!info_.hidden_at_output(id)) return v;
      for (std::size_t k = 0; k < outs.size(); ++k)
        if (outs[k] == id && is_float(v.dtype())) return fixed(v) + changes[k];
      return fixed(v);
    };
  };
  return rewritten(types, outs, on_use);
}

void CutStep::add_group(const HiddenGroup& g) {
  const std::set<Use> cuts(g.cuts.begin(), g.cuts.end());
  if (has_while(info_.program())) edges.push_back(edges_of(g, cuts));
  for (const bool hold : {false, true}) {
    const auto on_use = [&](const Values&) -> OnUse {
      return [&, hold](Use u, const Value& v) {
        const ValueId id = info_.index->node(u.node).inputs[u.input];
        return cuts.contains(u) || (hold && info_.hidden_at_output(id)) ? fixed(v) : v;
      };
    };
    (hold ? held : moved).push_back(rewritten({}, g.hidden_outvars(), on_use));
  }
}

void CutStep::add_feeds(std::size_t relation) {
  const HiddenParamOpRelation& r = graph_.hidden_param_op_relations[relation];
  std::vector<ValueId> operands;
  std::vector<Type> types;
  for (const Trainable& t : r.trainables) {
    operands.push_back(t.operand);
    types.push_back(info_.program().type(t.operand));
  }
  const auto own = [this](const Values&) -> OnResult {
    return [this](ValueId v, const Value& x) {
      return ends_prologue(info_.index->node(*info_.index->producer(v))) ? fixed(x) : x;
    };
  };
  const Graph before = rewritten({}, operands, {}, own);
  std::set<Use> cuts;
  if (r.kind == RelationKind::direct) cuts.insert(r.cuts.begin(), r.cuts.end());
  for (std::int64_t index : r.group_indices) {
    const HiddenGroup& g = graph_.hidden_groups[static_cast<std::size_t>(index)];
    const auto program = [&](bool around) {
      const auto on_use = [&](const Values& given) -> OnUse {
        return [&, given](Use u, const Value& v) {
          const ValueId id = info_.index->node(u.node).inputs[u.input];
          for (std::size_t k = 0; k < operands.size() && u.node == r.node; ++k)
            if (id == operands[k]) return given[k];
          // An op whose output is a new state feeds other states by itself.
          const HiddenVar* h = id == r.y ? nullptr : info_.hidden_at_output(id);
          const bool other = h && !g.contains(h->path);
          return cuts.contains(u) || other || (around && is_while(u)) ? fixed(v) : v;
        };
      };
      return rewritten(types, g.hidden_outvars(), on_use);
    };
    Feed f{relation, static_cast<std::size_t>(index), before, program(false), {}, {}};
    if (has_while(info_.program())) {
      f.fed_around = program(true);
      f.edges = edges_of(g, cuts);
    }
    feeds.push_back(std::move(f));
  }
}

}  // namespace braintrace::testing
