// SPDX-License-Identifier: Apache-2.0
// Where the parts of a step's program lie among its inputs and outputs.
#include <fmt/format.h>

#include "braintrace/algo/step_program.h"

namespace braintrace {

std::size_t StepProgram::first_moment() const {
  return graph.inputs().size() - (num_moments ? *num_moments + 2 : 0);
}

std::size_t StepProgram::first_signal() const { return first_moment() - num_signals; }

std::size_t StepProgram::first_trace_out() const {
  std::size_t exits = 0;
  for (const ProgramLeaf& leaf : leaves) exits += leaf.exit.has_value();
  return (has_loss ? 1 : 0) + num_results + exits;
}

std::string input_name(const StepProgram& p, std::size_t input) {
  if (input < p.num_args) return fmt::format("argument {}", input);
  if (input < p.first_trace())
    return fmt::format("state {}", p.leaves[input - p.num_args].name);
  if (input < p.first_trace() + p.num_traces)
    return fmt::format("trace {}", input - p.first_trace());
  const std::size_t rest = input - p.first_trace() - p.num_traces;
  if (rest < 2) return "counter";
  if (rest < 2 + p.inputs.size()) return p.inputs[rest - 2].name;
  if (input >= p.first_moment())
    return input - p.first_moment() < *p.num_moments ? "moment of the optimiser"
                                                     : "number of the optimiser";
  if (input >= p.first_signal())
    return fmt::format("signal {} at exit", input - p.first_signal());
  return "weight of the loss";
}

}  // namespace braintrace
