// SPDX-License-Identifier: Apache-2.0
#pragma once
// Integrate-and-fire neurons whose upstroke is a law of the potential alone, without and
// with an adaptation current. A law is a set of options:
//   kind                    the neuron's name, for messages
//   upstroke(V)             tau dV/dt without current, and its derivative in V
//   require_upstroke(size)  UserError unless the law's own coefficients are usable
// exp_if.h and qua_if.h have the laws and the names people use.
#include "braintrace/nn/exp_euler.h"
#include "braintrace/nn/neuron.h"

namespace braintrace::nn {

// tau dV/dt = upstroke(V) + R I. State: V.
template <class Options>
class NonlinearIF : public Neuron {
 public:
  explicit NonlinearIF(Shape size, Options options = {});
  Value get_spike() override;

  HiddenState V;

 protected:
  Value step(const Tangent& current) override;

 private:
  Options options_;
  Reset reset_;
};

// w1 = w + b s; tau dV/dt = upstroke(V) + R (I - w1); then
// tau_w dw/dt = a (V_new - V_rest) - w. States: V, w.
template <class Options>
class AdaptiveIF : public Neuron {
 public:
  explicit AdaptiveIF(Shape size, Options options = {});
  Value get_spike() override;

  HiddenState V, w;

 protected:
  Value step(const Tangent& current) override;

 private:
  Options options_;
  Reset reset_;
};

}  // namespace braintrace::nn
