// SPDX-License-Identifier: Apache-2.0
#pragma once
// The graph copier every pass is built on.
#include <functional>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/op_def.h"

namespace braintrace {

// What a pass does with one node. The site's inputs are values of the copy, its
// attributes already hold the rewritten sub-graphs, its outputs are not known yet.
struct RewriteRules {
  // New values for the outputs, or nullopt to copy the node.
  std::function<Rewrite(Builder&, const Site&)> node = {};
  // As `node`, for passes that match on the old graph: the node's index there, and the
  // copy's values by old value id.
  std::function<Rewrite(Builder&, std::size_t, std::span<const Value>)> old_node = {};
  // What becomes of each sub-graph; must keep its input and output types.
  std::function<Graph(const Graph&)> sub_graph = {};
  // Sees each copied node's outputs.
  std::function<void(const Site&)> copied = {};
  // Nodes to leave out: by index, true = skip. Nothing copied may read their outputs.
  std::vector<bool> skip = {};
};

// Keeps: inputs and their order, number, order and types of the outputs, source
// locations. Nodes are recorded, never folded, so constants stay constants.
Graph rewrite(const Graph& g, const RewriteRules& rules);

}  // namespace braintrace
