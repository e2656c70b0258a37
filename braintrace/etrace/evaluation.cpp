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

}  // namespace braintrace
