// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a compiled graph on numbers and gives its Jacobians and its transposed linear map:
// what a learning rule is made of, one piece at a time. Learners fuse the same pieces
// into one program per call; this is for looking at them and for rules outside the
// library.
#include "braintrace/algo/algorithm.h"
#include "braintrace/algo/executor.h"
#include "braintrace/algo/loss_program.h"
#include "braintrace/algo/step_jacobians.h"

namespace braintrace {

struct VjpExecutorOptions {
  // single_step: parameters are constants of the residual, and every hidden state at exit
  // has a perturbation; one step only. multi_step: any number of steps, parameters get
  // adjoints.
  VjpMethod vjp_method = VjpMethod::single_step;
  bool include_recurrent_mixing = false;      // own-position blocks of the whole Jacobian
  std::optional<std::int64_t> sparse_n = {};  // blocks over an n-step neighbourhood
  std::int64_t snap_max_jacobian_elements = std::int64_t{1} << 24;
  bool full_jacobian = false;  // every position with every other
  CompileOptions graph = {};   // what else the compiler is told
};

class ETraceVjpGraphExecutor : public ETraceGraphExecutor {
 public:
  // UserError: sparse_n or full_jacobian without include_recurrent_mixing
  // (not_supported).
  explicit ETraceVjpGraphExecutor(Module& model, VjpExecutorOptions options = {});
  ~ETraceVjpGraphExecutor() override;

  StepSolution solve_h2w_h2h_jacobian(const std::vector<StepArgument>& args,
                                      const TraceStepper& stepper = {},
                                      std::vector<Array> init_etrace = {}) override;
  // UserError not_implemented for several steps under single_step.
  StepSolution solve_h2w_h2h_l2h_jacobian(const std::vector<StepArgument>& args,
                                          const TraceStepper& stepper = {},
                                          std::vector<Array> init_etrace = {}) override;

 private:
  struct Program;
  enum class Want { jacobians, residual };
  StepSolution solve(const std::vector<StepArgument>& args, const TraceStepper& stepper,
                     std::vector<Array> etrace, Want want);
  std::shared_ptr<const Program> program(const std::vector<StepArgument>& args,
                                         Want want);
  void add_reverse(Program& p) const;
  StepSolution values(const Program& p, const std::vector<Array>& out) const;
  StepResidual residual(std::shared_ptr<const Program> p,
                        std::vector<Array> inputs) const;

  VjpExecutorOptions options_;
  std::unique_ptr<RuleContext> context_;
  std::unique_ptr<JacobianProgram> jacobians_;
  std::map<std::string, std::shared_ptr<const Program>> programs_;  // by argument types
};

}  // namespace braintrace
