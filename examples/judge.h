// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the examples share: a loop over the batches of a task, and the verdict on what was
// learnt. A model gives its scores, and spikes behind them when it has any. An example
// passes when, for three seeds, it ends clearly better than the best constant, its
// neurons fire and every parameter has a gradient.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braintrace/train/learner.h"
#include "braintrace/train/optimizers.h"
#include "braintrace/train/tasks.h"

namespace judge {

using namespace braintrace;

// Seeds 0, 1, 2; from JUDGE_FIRST_SEED on when it is set, to judge settings on seeds they
// were not chosen for.
std::vector<std::uint64_t> seeds();
constexpr std::int64_t kBatch = 32;

// What one seed came to: a loss beside that of the best constant, or hits beside chance.
struct Outcome {
  double loss = 0, constant = 0;
  std::int64_t hits = 0, trials = 0;
  double chance = 0.5;
  std::optional<double> rate = {};  // share of neurons that spike in a step
  StateDict grads = {};

  std::vector<std::string> faults() const;
  std::string to_string() const;
};

// For compile: kBatch samples, weights drawn from the seed.
LearnerOptions options(std::uint64_t seed);
Array example(const Task& task);  // zeros [kBatch, features]

// Hidden states and traces to zero; weights stay.
void start_again(Learner& learner);
// Trains on `batches` batches; returns the last gradients.
StateDict fit(Learner& learner, const Task& task, Optimizer& optimizer, int batches);
// Loss over the scored steps of unseen samples, beside the best constant's.
Outcome evaluate(Learner& learner, const Task& task, int batches = 4);
// fit, then evaluate.
Outcome learn(Learner& learner, const Task& task, Optimizer optimizer, int batches);

// Runs the training for every seed and prints the outcomes. 0 if all pass, else 1.
int run(const std::function<Outcome(std::uint64_t seed)>& train);
// The same for each rule.
int run(const std::vector<Algorithm>& rules,
        const std::function<Outcome(std::uint64_t seed, const Algorithm& rule)>& train);

}  // namespace judge
