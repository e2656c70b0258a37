// SPDX-License-Identifier: Apache-2.0
#pragma once
// A step program ready to run, with the arrays it reads and writes. Nothing is allocated
// from the second run on as long as nobody else holds the outputs.
#include <memory>
#include <span>
#include <string_view>

#include "braintrace/train/trace_packing.h"

namespace braintrace {

class ThreadPool;

enum class ExecutorKind { plan, interpreter };  // interpreter: slow, the oracle

class Executable {
 public:
  // `program`: of the rule's traces. It runs on them as they are stored.
  Executable(StepProgram program, const TracePacking& packing, ExecutorKind kind,
             std::shared_ptr<ThreadPool> pool, bool profile = false);
  ~Executable();
  // From now on with traces that are stored like this.
  void repack(const TracePacking& packing);

  // What runs: with traces as they are stored.
  const StepProgram& program() const { return program_; }
  // With traces as the rule has them.
  const StepProgram& of_rule() const { return of_rule_ ? *of_rule_ : program_; }
  // Traces, parameters and moments given as inputs may be written where they are.
  bool moves_in_place() const { return in_place_; }
  // The output went where its input is, and is not among `outputs`.
  bool moved(std::size_t output) const;

  // In the order of the program. Inputs are read where they are; `own` has room for
  // those nobody else keeps.
  std::vector<const Array*> inputs;
  std::vector<Array> own, outputs;
  // UserError, naming `caller`, when an input has a wrong type.
  void check(std::string_view caller) const;
  void run();  // behind check

  // Outputs of the last run under names.
  double loss() const;  // summed over a window
  std::span<const Array> results() const;
  StateDict& gradients();  // until the next run; a caller may put other arrays there
  // Adjoints of the states at entry, for a program that takes those at exit.
  std::span<Array> entry_signals();
  std::string describe() const;  // the kernels, one per line; the program if interpreted

 private:
  struct Engine;
  std::optional<StepProgram> of_rule_;  // absent: the same
  StepProgram program_;
  ExecutorKind kind_;
  std::shared_ptr<ThreadPool> pool_;
  bool profile_, in_place_ = false;
  void plan();
  void lend();
  StateDict gradients_;
  std::vector<Array*> places_;  // in gradients_, by gradient
  bool lent_ = false;           // gradients_ holds them, not the outputs
  std::unique_ptr<Engine> engine_;
};

}  // namespace braintrace
