// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/inline_calls.h"

#include "braintrace/passes/rewrite.h"

namespace braintrace {

Graph inline_calls(const Graph& g) {
  RewriteRules rules{.sub_graph = inline_calls};
  rules.node = [](Builder&, const Site& s) -> Rewrite {
    return s.op.inline_body ? s.op.inline_body(s) : std::nullopt;
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
