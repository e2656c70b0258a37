// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/unroll_scan.h"

#include "braintrace/passes/rewrite.h"

namespace braintrace {

Graph unroll_scan(const Graph& g, const UnrollOptions& options) {
  RewriteRules rules;
  rules.sub_graph = [&](const Graph& sub) { return unroll_scan(sub, options); };
  rules.node = [&](Builder&, const Site& s) -> Rewrite {
    return s.op.unroll ? s.op.unroll(s, options) : std::nullopt;
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
