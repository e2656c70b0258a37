// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/executable.h"

#include <fmt/format.h>

#include "braintrace/passes/pipeline.h"
#include "braintrace/run/interpreter.h"

namespace braintrace {

struct Executable::Engine {
  Graph graph;
};

Executable::Executable(StepProgram program, ExecutorKind, int)
    : program_(std::move(program)),
      engine_(std::make_unique<Engine>(Engine{optimize(program_.graph)})) {
  program_.graph = engine_->graph;
}

Executable::~Executable() = default;

const std::vector<Array>& Executable::run(std::span<const Array> inputs,
                                          std::string_view caller) {
  const std::vector<Type> types = program_.graph.input_types();
  BT_INVARIANT(inputs.size() == types.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    BT_REQUIRE(type_of(inputs[i]) == types[i],
               fmt::format("{}: {} must be {}, got {}", caller, input_name(program_, i),
                           to_string(types[i]), to_string(type_of(inputs[i]))));
  outputs_ = interpret(engine_->graph, inputs);
  return outputs_;
}

double Executable::loss() const {
  if (!program_.has_loss) return 0;
  double sum = 0;
  for (double v : outputs_[0].to_doubles()) sum += v;
  return sum;
}

const StateDict& Executable::gradients() {
  for (std::size_t i = 0; i < program_.gradients.size(); ++i)
    gradients_.insert_or_assign(program_.gradients[i],
                                outputs_[program_.first_gradient() + i]);
  return gradients_;
}

}  // namespace braintrace
