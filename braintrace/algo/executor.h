// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contract between a compiled graph and what runs it: one step or several forward,
// with the Jacobians a learning rule asks for.
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "braintrace/algo/input_data.h"
#include "braintrace/etrace/report.h"

namespace braintrace {

// One argument of the step, or one for every step behind a leading time axis.
struct StepArgument {
  StepArgument(Array a) : value(std::move(a)) {}  // NOLINT: written as a value
  // NOLINTNEXTLINE: written as a value. UserError unless there is exactly one.
  StepArgument(const SingleStepData& d);
  StepArgument(const MultiStepData& d);  // NOLINT

  Array value;
  bool multi_step = false;
};

// What a step hands to a learning rule. Over several steps all arrays have time in front;
// inside an opened loop the sub-steps follow.
struct StepJacobians {
  std::map<std::size_t, Array> x;  // by relation; readers of one value share one array
  // (relation, group): (*varshape, num_state), the tail's derivative
  std::map<std::pair<std::size_t, std::int64_t>, Array> df;
  // Per group: (*varshape, M, M), or (*varshape, S, *varshape, S) for full Jacobians.
  std::vector<Array> D;
};

// Cotangents of what a run gave. Absent: zero.
struct StepCotangents {
  std::vector<std::optional<Array>> out = {};
  std::map<Path, Array> hidden = {};        // at exit
  std::map<std::string, Array> other = {};  // by slash path of the leaf, at exit
};

struct StepAdjoints {
  std::vector<std::optional<Array>> args;  // absent for integers
  std::map<Path, Array> hidden;            // at entry
  std::map<std::string, Array> params;     // by slash path of the leaf; multi-step only
  std::map<std::string, Array> other;      // at entry
  std::map<Path, Array> perturb;           // of hidden states at exit; single-step only
};

// The transposed linear map of a run at its values.
using StepResidual = std::function<StepAdjoints(const StepCotangents&)>;

struct StepSolution {
  std::vector<Array> out;                   // stacked over several steps
  std::map<Path, Array> hidden_vals;        // at the end
  std::map<std::string, Array> other_vals;  // by slash path of the leaf, at the end
  StepJacobians jacobians;                  // empty when a stepper consumed them
  StepResidual residual = {};               // l2h only
  std::vector<Array> final_etrace = {};     // with a stepper only
};

// The traces after a step.
using TraceStepper = std::function<std::vector<Array>(const std::vector<Array>& etrace,
                                                      const StepJacobians& step)>;

class ETraceGraphExecutor {
 public:
  explicit ETraceGraphExecutor(Module& model, CompileOptions options = {});
  virtual ~ETraceGraphExecutor() = default;

  // Builds the graph for inputs of these types; of several steps the first one is taken.
  // A second call is a no-op.
  void compile_graph(const std::vector<StepArgument>& args);
  bool is_compiled() const { return graph_ != nullptr; }
  const ETraceGraph& graph() const;  // UserError before compile_graph

  // The states the step uses, in retrieved order.
  std::vector<NamedState> path_to_states() const;
  std::vector<State*> states() const;

  // Writes the summary to `out` when given; returns it.
  std::string show_graph(int verbose = 1, std::ostream* out = nullptr) const;

  // From the stored states, which stay as they are: the step, or a scan over the time
  // axis of the arguments that have one (the others are fed again at every step), with
  // hidden-to-weight and hidden-to-hidden Jacobians. A stepper (several steps only) takes
  // them step by step instead.
  virtual StepSolution solve_h2w_h2h_jacobian(const std::vector<StepArgument>& args,
                                              const TraceStepper& stepper = {},
                                              std::vector<Array> init_etrace = {}) = 0;
  // The same, with the residual.
  virtual StepSolution solve_h2w_h2h_l2h_jacobian(
      const std::vector<StepArgument>& args, const TraceStepper& stepper = {},
      std::vector<Array> init_etrace = {}) = 0;

 protected:
  Module& model() { return model_; }

 private:
  Module& model_;
  CompileOptions options_;
  std::unique_ptr<ETraceGraph> graph_;
};

}  // namespace braintrace
