// SPDX-License-Identifier: Apache-2.0
#pragma once
// A step program ready to run, with the arrays it reads and writes.
#include <memory>
#include <string_view>

#include "braintrace/algo/step_program.h"

namespace braintrace {

enum class ExecutorKind { plan, interpreter };  // interpreter: slow, the oracle

class Executable {
 public:
  Executable(StepProgram program, ExecutorKind kind, int threads);
  ~Executable();

  const StepProgram& program() const { return program_; }
  // In the order of the program's inputs. UserError, naming `caller`, on a wrong type.
  const std::vector<Array>& run(std::span<const Array> inputs, std::string_view caller);

  // The same numbers under names; valid after run().
  double loss() const;
  const Array& output(std::size_t i) const { return outputs_[i]; }
  const StateDict& gradients();

 private:
  struct Engine;
  StepProgram program_;
  std::vector<Array> outputs_;
  StateDict gradients_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace braintrace
