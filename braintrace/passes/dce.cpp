// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/dce.h"

#include <algorithm>

#include "braintrace/passes/rewrite.h"

namespace braintrace {

Graph dce(const Graph& g) {
  std::vector<bool> live(g.num_values(), false);
  for (ValueId v : g.outputs()) live[v.index] = true;
  RewriteRules rules{.sub_graph = dce};
  rules.skip.assign(g.nodes().size(), true);
  for (std::size_t i = g.nodes().size(); i-- > 0;) {
    const Node& n = g.nodes()[i];
    const bool used = std::any_of(n.outputs.begin(), n.outputs.end(),
                                  [&](ValueId v) { return live[v.index]; });
    if (!used) continue;
    rules.skip[i] = false;
    for (ValueId v : n.inputs) live[v.index] = true;
  }
  return rewrite(g, rules);
}

}  // namespace braintrace
