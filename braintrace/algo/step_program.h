// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything one call of a learner computes, as one program: the step, the loss, its
// gradient, and the traces after it.
#include "braintrace/algo/loss_program.h"
#include "braintrace/algo/rule_program.h"

namespace braintrace {

// Inputs:  [arguments | state leaves | traces | calls | trace steps | rule inputs |
//           weight of the loss | signals at exit]   (the last two under gradient only)
// Outputs: [loss, when there is one | results | exits | traces | gradients |
//           signals at entry]
// With an optimiser inside (train/update_program.h) parameters are among the exits, there
// are no gradients, and behind all inputs come [moments | learning rate | count], behind
// all outputs [moments].
struct StepProgram {
  Graph graph;
  std::size_t num_args = 0;
  bool has_loss = false;
  std::size_t num_results = 0;
  std::vector<ProgramLeaf> leaves;  // exits count within this program's outputs
  std::size_t num_traces = 0;       // that go in: all of the rule's, or none
  std::size_t num_traces_out = 0;   // that come out: all, or none when they end as zeros
  std::vector<RuleInput> inputs;
  std::vector<std::string> gradients;  // slash paths, one per parameter leaf asked for
  std::size_t num_signals = 0;         // float states the program writes, when asked for
  std::optional<std::size_t> num_moments = {};  // present: an optimiser is inside
  std::int64_t steps = 1;                       // trace steps of one run
  std::int64_t calls = 1;                       // what one run adds to the running index

  std::size_t first_leaf() const { return num_args; }
  std::size_t first_trace() const { return num_args + leaves.size(); }
  std::size_t first_signal() const;  // input
  std::size_t first_moment() const;  // input
  std::size_t first_trace_out() const;
  std::size_t first_gradient() const { return first_trace_out() + num_traces_out; }
  std::size_t first_moment_out() const {
    return first_gradient() + gradients.size() + num_signals;
  }
};

// "argument 0", "state rnn/h", "trace bwg/0/0/weight": for messages.
std::string input_name(const StepProgram& p, std::size_t input);

struct StepRequest {
  bool gradient = true;
  // Leaves to differentiate by, slash paths; empty: every parameter of the program.
  std::vector<std::string> weights = {};
  std::optional<std::int64_t> lanes = {};
  std::int64_t window = 0;  // 0: one step; k: the arguments hold k steps
  // Multi-step rules: adjoints of the states come in at exit and go out at entry.
  bool signals = false;
};

// How the loss must be traced for these requests.
SpliceOptions splice_options(const CompiledRule& rule, const StepRequest& request);
// One step, or one window of the multi-step estimator.
StepProgram assemble(const CompiledRule& rule, const LossProgram& loss,
                     const StepRequest& request);

}  // namespace braintrace
