// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fits the predictor of DNI on a sequence: to what the loss of a window, and the
// prediction at its end, send back to the hidden states at its entry.
#include "braintrace/train/learner.h"
#include "braintrace/train/optimizers.h"

namespace braintrace {

struct SyntheticTrainingOptions {
  std::int64_t chunk_size = 1;  // steps per window; must divide the length
  // Of the outputs of one window, time in front; a float scalar. Default: the sum of
  // their squares.
  std::function<Value(const Values& outputs)> loss = {};
  UpdateRule optimizer = SGD{.lr = 1e-2};
  std::int64_t epochs = 1;
  bool reset = true;  // states, traces and counters at the start of every epoch
};

// The mean squared error of every epoch, over its windows and the end of the sequence,
// behind which nothing is sent back. Parameters of the model never move; states and
// traces end where the sequence ends. UserError: no DNI learner with a synthesizer, a
// learner under vmap, chunk_size or epochs below 1, a chunk_size that does not divide.
std::vector<double> train_synthetic_gradient(
    Learner& learner, const std::vector<Array>& inputs,
    const SyntheticTrainingOptions& options = {});

}  // namespace braintrace
