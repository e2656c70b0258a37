// SPDX-License-Identifier: Apache-2.0
#pragma once
// Walks a program node by node with hooks for structured control flow: the base that
// checks and analyses share (the role of the reference's JaxprEvaluation).
#include <cstddef>

#include "braintrace/ir/graph.h"

namespace braintrace {

class GraphEvaluation {
 public:
  virtual ~GraphEvaluation() = default;
  void evaluate(const Graph& g);

 protected:
  // A call with a body of its own (custom derivatives). Default: an ordinary node.
  virtual void eval_pjit(std::size_t i, const Node& n) { eval_node(i, n); }
  virtual void eval_scan(std::size_t i, const Node& n) { eval_node(i, n); }
  virtual void eval_while(std::size_t i, const Node& n) { eval_node(i, n); }
  virtual void eval_cond(std::size_t i, const Node& n) { eval_node(i, n); }
  virtual void eval_node(std::size_t, const Node&) {}
};

}  // namespace braintrace
