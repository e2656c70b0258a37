// SPDX-License-Identifier: Apache-2.0
#pragma once
// One small model on one random sequence, learned online by different rules: the bench
// on which rules are compared with each other and with back-propagation through time.
#include <string>

#include "braintrace/train/learner.h"

namespace braintrace::testing {

struct OnlineTrial {
  std::string model;                            // as nn::build_model takes it
  Shape input;                                  // of one step, without batch
  std::optional<std::int64_t> batch_size = {};  // samples on axis 0
  std::int64_t steps = 4;
  // Steps per program of a single-step rule; 1: step by step, as streams run.
  std::int64_t window = 1;
  std::uint64_t seed = 3;       // of parameters and sequence
  LearnerOptions options = {};  // what else the learner is told; f64 throughout

  // Gradients of the squared distance to random targets, summed over all steps.
  // `chunk` steps per window where the rule takes windows.
  StateDict online(const Algorithm& algorithm, std::int64_t chunk = 1) const;
  StateDict bptt() const;

  std::unique_ptr<Module> build() const;
  // Compiled with the trial's parameters. `m`: what build() gave.
  Learner learner(Module& m, const Algorithm& algorithm) const;
  Array inputs() const;                                     // [steps, ...]
  Array targets(const Shape& output) const;                 // [steps, *output]
  StateDict run(Learner& l, std::int64_t chunk = 1) const;  // online(), with a learner
};

// The largest difference over all leaves of `want`, as a share of its largest entry.
double relative_distance(const StateDict& got, const StateDict& want);
double relative_distance(const StateDict& got, const StateDict& want,
                         const std::string& leaf);
// The largest entry: a silent network proves nothing.
double largest(const StateDict& grads, const std::string& leaf);

}  // namespace braintrace::testing
