// SPDX-License-Identifier: Apache-2.0
#pragma once
// What passes that look for arithmetic ask about a graph. They see lowerings, never ops.
#include <optional>

#include "braintrace/ir/op_def.h"

namespace braintrace {

// A graph with its nodes lowered, and where each value comes from and goes to.
class LoweredGraph {
 public:
  explicit LoweredGraph(const Graph& g);

  const Graph& graph() const { return g_; }
  // Null for inputs of the graph.
  const Node* producer(ValueId v) const { return producers_[v.index]; }
  // Reads of v; an output of the graph reads, too.
  int uses(ValueId v) const { return uses_[v.index]; }
  const Lowering& lowering(const Node& n) const {
    return lowerings_[static_cast<std::size_t>(&n - g_.nodes().data())];
  }

 private:
  const Graph& g_;
  std::vector<const Node*> producers_;
  std::vector<int> uses_;
  std::vector<Lowering> lowerings_;
};

bool is_micro(const Lowering& l, MicroOp op);
bool is_sum(const Lowering& l);
// A product of two operands without a bias, else null.
const lowering::Gemm* plain_gemm(const LoweredGraph& g, const Node& n);

// A product of two factors: dense, a convolution, or at connections.
bool is_product(const LoweredGraph& g, const Node& n);

// For a node that only permutes axes, stretches them or adds and drops axes of size 1:
// by input axis, the output axis it becomes; -1 where an axis of size 1 is dropped or
// stretched. Nullopt for any other node.
std::optional<Ints> view_axes(const LoweredGraph& g, const Node& n);

// The one number a literal of several elements holds, as a scalar; nullopt for any other
// node.
std::optional<Array> splat_of(const Node& n);

}  // namespace braintrace
