// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/simplify.h"

#include "braintrace/passes/rewrite.h"

namespace braintrace {

Graph simplify(const Graph& g) {
  RewriteRules rules{.sub_graph = simplify};
  rules.node = [](Builder&, const Site& s) -> Rewrite {
    return s.op.simplify ? s.op.simplify(s) : std::nullopt;
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
