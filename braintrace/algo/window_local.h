// SPDX-License-Identifier: Apache-2.0
#pragma once
// One step cut in two for windows: what the next state needs, and all the rest.
#include "braintrace/algo/step_program.h"

namespace braintrace {

// The rest of a step, given its entry states and the results of its products.
// Inputs:  [arguments | leaves | kept values | weight | calls | trace steps | rule
// inputs] Outputs: [loss | results | newest gradients | signal per group | D per group |
// adjoint
//           per hidden state | reads | old signal per group | old adjoint per hidden
//           state]
struct LocalProgram {
  Graph graph;
  std::vector<std::string> newest;  // leaves
  std::vector<bool> has_D;          // per group
  std::size_t num_groups = 0, num_adjoints = 0;
  bool has_old = false;  // the loss reads old states: the last two are there
  std::vector<RuleInput> inputs;
};

// One step in reverse from credit at its exits, nothing cut (history = deep).
// Inputs: [arguments | leaves | kept values | credit per hidden state]
struct DeepProgram {
  Graph back;                       // -> signal per group
  Graph past;                       // -> gradient per leaf
  std::vector<std::string> leaves;  // of those gradients
};

struct SplitStep {
  std::vector<bool> carried;  // per leaf: written by the step
  Graph advance;              // [arguments | leaves] -> [carried leaves | kept values]
  std::size_t num_kept = 0;
  LocalProgram local;
  std::optional<DeepProgram> deep;  // when the rule's history is
};

SplitStep split_step(const CompiledRule& rule, const LossProgram& step,
                     const std::vector<std::string>& weights);

}  // namespace braintrace
