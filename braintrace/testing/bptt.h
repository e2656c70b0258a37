// SPDX-License-Identifier: Apache-2.0
#pragma once
// Back-propagation through time: reverse mode through the step unrolled over a whole
// sequence. Slow and memory-hungry, exact: the oracle for every online rule.
#include <functional>
#include <string>
#include <vector>

#include "braintrace/model/step_model.h"
#include "braintrace/ops/ops.h"

namespace braintrace::testing {

// The inputs of one step, one array per argument.
using StepInputs = std::vector<Array>;

// Loss of step t, a float scalar of the step's outputs. The total is the sum over t.
using StepLoss = std::function<Value(std::size_t t, const Values& outputs)>;

// The unrolled sequence as one program.
// Inputs:  [state leaves at the start | arguments of step 0 | arguments of step 1 ...]
// Outputs: [total loss | per step: outputs, then state leaves]
struct Unrolled {
  StepModel step;
  Graph program;
  std::vector<std::string> leaves;  // slash paths of the state leaves, in program order
  std::vector<bool> is_parameter;   // per leaf
  std::vector<Array> inputs;        // the numbers to run it on
};
// Loops of a known number of turns are scans there. States must have values; they are not
// changed. UserError on an empty sequence.
Unrolled unroll(Module& m, const std::vector<StepInputs>& sequence, const StepLoss& loss);

struct BpttResult {
  double loss = 0;
  std::vector<std::vector<Array>> outputs;  // [step][output]
  std::vector<StateDict> states;            // [step]: what is not a parameter, after it
  StateDict grads;                          // every parameter leaf the step touches
};
BpttResult bptt(Module& m, const std::vector<StepInputs>& sequence, const StepLoss& loss);
// The same sequence step by step, without loss and gradients.
BpttResult forward(Module& m, const std::vector<StepInputs>& sequence);

// Splits an array along axis 0 into the one-argument steps of a sequence.
std::vector<StepInputs> steps_of(const Array& xs);

}  // namespace braintrace::testing
