// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/evaluation.h"

#include "braintrace/ir/op_def.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {

void GraphEvaluation::evaluate(const Graph& g) {
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    const Node& n = g.nodes()[i];
    if (as_scan(n)) {
      eval_scan(i, n);
    } else if (as_while(n)) {
      eval_while(i, n);
    } else if (as_cond(n)) {
      eval_cond(i, n);
    } else if (has(n.op->traits, Trait::region)) {
      eval_pjit(i, n);
    } else {
      eval_node(i, n);
    }
  }
}

GraphRewrite::GraphRewrite(const Graph& g)
    : g_(g), builder_(Builder::create()), env_(g.num_values()) {
  for (ValueId v : g.inputs()) env_[v.index] = builder_->input(g.type(v));
}

std::vector<Value> GraphRewrite::values(std::span<const ValueId> ids) const {
  std::vector<Value> out;
  for (ValueId v : ids) out.push_back(env_[v.index]);
  return out;
}

void GraphRewrite::define(const Node& n, const std::vector<Value>& out) {
  for (std::size_t k = 0; k < n.outputs.size(); ++k) env_[n.outputs[k].index] = out[k];
}

void GraphRewrite::eval_node(std::size_t, const Node& n) {
  define(n, builder_->record(*n.op, values(n.inputs), n.attrs, n.loc));
}

}  // namespace braintrace
