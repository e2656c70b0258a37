// SPDX-License-Identifier: Apache-2.0
#pragma once
// Losses of one step: Value functions that give a float scalar. All are means over every
// entry (or over every leading axis where there is a class axis), so a batch enters as a
// mean. Shapes must match exactly: a broadcast here would hide a mistake.
#include "braintrace/ir/value.h"

namespace braintrace {

// mean (p - t)^2
Value mse(const Value& prediction, const Value& target);
// mean |p - t|
Value l1(const Value& prediction, const Value& target);
// mean of e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2);  e = p - t
Value huber(const Value& prediction, const Value& target, double delta = 1);

// Labels are i32, of the shape of the scores without their last axis, each in
// [0, classes): UserError when run otherwise.
// mean of -log softmax(logits)[label]
Value softmax_cross_entropy(const Value& logits, const Value& labels);
// mean of -log_probs[label]
Value nll(const Value& log_probs, const Value& labels);

// mean of -t log sigmoid(z) - (1 - t) log(1 - sigmoid(z)), without overflow; t in [0, 1].
Value binary_cross_entropy(const Value& logits, const Value& target);

// mean of 1 - cos(angle between p and t) along the axis; a zero vector has cosine 0.
Value cosine_loss(const Value& prediction, const Value& target, std::int64_t axis = -1);

// Penalties that keep a spiking network alive and its potentials bounded.
struct FiringRatePenalty {
  double target_hz = 10;
  double dt = 1;  // ms
  double factor = 1;
};
// factor (mean(spikes) - target_hz dt / 1000)^2
Value firing_rate_penalty(const Value& spikes, const FiringRatePenalty& options = {});

struct PotentialPenalty {
  double low = -1, high = 1;  // mV
  double factor = 1;
};
// factor (mean(relu(V - high)^2 + relu(low - V)^2))^2
Value potential_penalty(const Value& V, const PotentialPenalty& options = {});

}  // namespace braintrace
