// SPDX-License-Identifier: Apache-2.0
#pragma once
// Izhikevich's two-variable neuron.
#include "braintrace/nn/neuron.h"

namespace braintrace::nn {

struct IzhikevichOptions {
  Coefficient p1 = 0.04, p2 = 5, p3 = 140;        // 1/(ms mV), 1/ms, mV/ms
  Coefficient a = 0.02, b = 0.2, c = -65, d = 8;  // 1/ms, 1/ms, mV, mV/ms
  Coefficient R = 1, tau = 10, V_th = 30;
  Initializer V_init = constant_init(-65), u_init = constant_init(-13);  // u = b V
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "hard";
  double dt = 1;
};

// dV/dt = p1 V^2 + p2 V + p3 - u + R I / tau;  du/dt = a (b V_new - u).
// At a spike V goes to c (soft: down by V_th - c) and u up by d. States: V, u.
class Izhikevich : public Neuron {
 public:
  explicit Izhikevich(Shape size, IzhikevichOptions options = {});
  Value get_spike() override;

  HiddenState V, u;

 protected:
  Value step(const Tangent& current) override;

 private:
  IzhikevichOptions options_;
  Reset reset_;
};

}  // namespace braintrace::nn
