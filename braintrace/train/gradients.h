// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one does with gradients by path before they reach an optimiser.
#include "braintrace/model/module.h"

namespace braintrace {

// The p-norm of all entries of all arrays together; p >= 1, infinity allowed.
double global_norm(const StateDict& grads, double p = 2);

// grads min(1, max_norm / (global_norm + 1e-6)). All stay as they are below max_norm.
StateDict clip_grad_norm(const StateDict& grads, double max_norm, double p = 2);

// Every entry into [-limit, limit].
StateDict clip_grad_value(const StateDict& grads, double limit);

// a + b, path by path; a path in one of them counts as zeros in the other. UserError when
// shapes differ.
StateDict add_grads(const StateDict& a, const StateDict& b);
StateDict scale_grads(const StateDict& grads, double factor);

// A leaky sum of gradients: G <- decay G + g. For updates that come more slowly than
// gradients.
class GradExpon {
 public:
  explicit GradExpon(double decay);                      // in (0, 1)
  static GradExpon with_tau(double tau, double dt = 1);  // decay = exp(-dt / tau), ms

  double decay() const { return decay_; }
  const StateDict& update(const StateDict& grads);
  const StateDict& value() const { return value_; }  // also what a checkpoint keeps
  void restore(StateDict value) { value_ = std::move(value); }
  void reset() { value_.clear(); }

 private:
  double decay_;
  StateDict value_;
};

}  // namespace braintrace
