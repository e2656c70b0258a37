// SPDX-License-Identifier: Apache-2.0
#pragma once
// A learner and its optimiser as a checkpoint, from which they go on bit for bit.
#include "braintrace/io/checkpoint.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/optimizers.h"

namespace braintrace {

// Weights, states (keys of random draws among them), traces, moments and counters. The
// config holds {"algorithm", "calls", "trace_steps"}; the caller may add to it, and says
// how to build the model.
Checkpoint checkpoint_of(const Learner& learner, const Optimizer& optimizer,
                         std::int64_t step);
// Puts everything back. UserError, before anything changes, when a path, shape or trace
// does not belong to them, one of the learner's is missing, or another algorithm or
// optimiser wrote it.
void restore(Learner& learner, Optimizer& optimizer, const Checkpoint& c);
// The same without an optimiser; what the checkpoint has of one is left aside.
void restore(Learner& learner, const Checkpoint& c);

}  // namespace braintrace
