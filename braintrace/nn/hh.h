// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Hodgkin-Huxley neuron.
#include "braintrace/nn/neuron.h"

namespace braintrace::nn {

struct HHOptions {
  Coefficient E_Na = 50, g_Na = 120, E_K = -77, g_K = 36, E_L = -54.387, g_L = 0.03;
  Coefficient C = 1, V_th = 20;
  double V_init = -65;  // the gates start at their steady state here
  Surrogate spk_fun = Surrogate("ReluGrad");
  double dt = 1;
};

// C dV/dt = I - g_Na m^3 h (V - E_Na) - g_K n^4 (V - E_K) - g_L (V - E_L);
// dx/dt = alpha_x (1 - x) - beta_x x for the gates m, h, n, with V frozen. Returns the
// onset of a spike, s(V_new) (1 - s(V_old)). States: V, m, h, n.
class HH : public Neuron {
 public:
  explicit HH(Shape size, HHOptions options = {});
  Value get_spike() override;  // s(V), which stays 1 during the spike

  HiddenState V, m, h, n;

 protected:
  Value step(const Tangent& current) override;

 private:
  HHOptions options_;
};

}  // namespace braintrace::nn
