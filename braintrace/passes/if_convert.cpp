// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/if_convert.h"

#include "braintrace/passes/rewrite.h"

namespace braintrace {

Graph if_convert(const Graph& g) {
  RewriteRules rules{.sub_graph = if_convert};
  rules.node = [](Builder&, const Site& s) -> Rewrite {
    return s.op.to_select ? s.op.to_select(s) : std::nullopt;
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
