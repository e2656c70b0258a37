// SPDX-License-Identifier: Apache-2.0
#pragma once
// Producer and consumers of every value of a program, and sub-program extraction.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "braintrace/ir/graph.h"
#include "braintrace/ir/op_def.h"

namespace braintrace {

inline bool is_etp(const Node& n) { return n.op->etp != nullptr; }

struct Use {
  std::size_t node;
  std::size_t input;  // position in the node's input list
  friend auto operator<=>(const Use&, const Use&) = default;
};

class GraphIndex {
 public:
  explicit GraphIndex(Graph g);
  const Graph& graph() const { return g_; }
  // The node that defines v; nullopt for program inputs.
  std::optional<std::size_t> producer(ValueId v) const;
  std::span<const Use> uses(ValueId v) const { return uses_[v.index]; }
  const Node& node(std::size_t i) const { return g_.nodes()[i]; }

 private:
  Graph g_;
  std::vector<std::int64_t> producer_;
  std::vector<std::vector<Use>> uses_;
};

// Has the node a derivative in this input? Not at stop_gradient, at ops without tangents,
// nor for integers.
bool passes_tangent(const GraphIndex& index, Use u);

// A part of a program as a program of its own.
struct SubProgram {
  Graph graph;                     // inputs: constants, then arguments
  std::vector<ValueId> constants;  // values of the enclosing program
};

// The nodes in `order` (program order), recomputing `outputs` from `arguments`. An input
// of a kept node is an argument or an inner value when `is_variable(use)` says so, else a
// constant.
SubProgram extract(const GraphIndex& index, std::span<const std::size_t> nodes,
                   std::span<const ValueId> arguments, std::span<const ValueId> outputs,
                   const std::function<bool(Use)>& is_variable);

// Values reachable forward from v along uses for which `follow` is true, v first, in
// breadth-first order.
std::vector<ValueId> reach_forward(const GraphIndex& index, ValueId v,
                                   const std::function<bool(Use)>& follow);

// The types of one node, for rule slots.
struct NodeTypes {
  std::vector<Type> in, out;
};
NodeTypes types_of(const Graph& g, const Node& n);

// A trainable op that is not transparent on other ops' tails.
bool is_structural_etp(const Node& n);

}  // namespace braintrace
