// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/stretch_constants.h"

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {

Graph stretch_constants(const Graph& g) {
  RewriteRules rules{.sub_graph = stretch_constants};
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value>) -> Rewrite {
    const Node& n = g.nodes()[i];
    const auto number = splat_of(n);
    if (!number) return std::nullopt;
    return {{broadcast_to(b.constant(*number), g.type(n.outputs[0]).shape)}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
