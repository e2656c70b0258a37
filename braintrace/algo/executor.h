// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contract between a compiled graph and what runs it: one step forward, with the
// Jacobians a learning rule asks for.
#include <iosfwd>
#include <memory>
#include <string>

#include "braintrace/etrace/report.h"

namespace braintrace {

// Values a step hands to a learning rule, by relation and group index.
struct StepJacobians {
  std::map<ValueId, Array> x;                                // per distinct data input
  std::map<std::pair<std::size_t, std::int64_t>, Array> df;  // (relation, group)
  std::vector<Array> D;                                      // per group
};

struct StepSolution {
  std::vector<Array> out;
  std::map<Path, Array> hidden_vals;
  std::map<Path, std::vector<Array>> other_vals;
  StepJacobians jacobians;
};

class ETraceGraphExecutor {
 public:
  explicit ETraceGraphExecutor(Module& model, CompileOptions options = {});
  virtual ~ETraceGraphExecutor() = default;

  // Builds the graph for inputs of these types. A second call is a no-op.
  void compile_graph(const std::vector<Array>& args);
  bool is_compiled() const { return graph_ != nullptr; }
  const ETraceGraph& graph() const;  // UserError before compile_graph

  // The states the step uses, in retrieved order.
  std::vector<NamedState> path_to_states() const;
  std::vector<State*> states() const;

  // Writes the summary to `out` when given; returns it.
  std::string show_graph(int verbose = 1, std::ostream* out = nullptr) const;

  // One step and its hidden-to-weight and hidden-to-hidden Jacobians.
  virtual StepSolution solve_h2w_h2h_jacobian(const std::vector<Array>& args) = 0;
  // The same, with what is needed to pull a loss back to the hidden states.
  virtual StepSolution solve_h2w_h2h_l2h_jacobian(const std::vector<Array>& args) = 0;

 protected:
  Module& model() { return model_; }

 private:
  Module& model_;
  CompileOptions options_;
  std::unique_ptr<ETraceGraph> graph_;
};

}  // namespace braintrace
