// SPDX-License-Identifier: Apache-2.0
#pragma once
// Walks a program node by node with hooks for structured control flow: the base that the
// passes share (the role of the reference's JaxprEvaluation). Analyses override the hooks
// of what they look for; a pass that writes the program anew starts from GraphRewrite.
// Only questions about influence do not walk nodes: they follow uses (position_flow.h),
// and region_flow.h answers them for bodies.
#include <cstddef>
#include <string_view>
#include <vector>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/graph.h"

namespace braintrace {

class GraphEvaluation {
 public:
  virtual ~GraphEvaluation() = default;
  void evaluate(const Graph& g);

 protected:
  // A call with a body of its own (custom derivatives). Default: an ordinary node.
  virtual void eval_pjit(std::size_t i, const Node& n) { eval_node(i, n); }
  virtual void eval_scan(std::size_t i, const Node& n) {
    eval_control_flow(i, n, "scan");
  }
  virtual void eval_while(std::size_t i, const Node& n) {
    eval_control_flow(i, n, "while");
  }
  virtual void eval_cond(std::size_t i, const Node& n) {
    eval_control_flow(i, n, "cond");
  }
  // Any of the three. Default: an ordinary node.
  virtual void eval_control_flow(std::size_t i, const Node& n, std::string_view) {
    eval_node(i, n);
  }
  virtual void eval_node(std::size_t, const Node&) {}
};

// Copies a program into a new one; hooks say what becomes of a node.
class GraphRewrite : public GraphEvaluation {
 public:
  // Inputs of the new program: those of the old one.
  explicit GraphRewrite(const Graph& g);

 protected:
  const Graph& graph() const { return g_; }
  Builder& builder() { return *builder_; }
  const Value& value(ValueId v) const { return env_[v.index]; }
  std::vector<Value> values(std::span<const ValueId> ids) const;
  // What the old node's outputs are from now on; further values are left alone.
  void define(const Node& n, const std::vector<Value>& out);
  void eval_node(std::size_t i, const Node& n) override;

 private:
  const Graph& g_;
  std::shared_ptr<Builder> builder_;
  std::vector<Value> env_;
};

}  // namespace braintrace
