// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exponential integrate-and-fire neurons, without and with adaptation.
#include "braintrace/nn/neuron.h"

namespace braintrace::nn {

struct ExpIFOptions {
  Coefficient R = 1, tau = 10, V_th = -30, V_reset = -68, V_rest = -65;
  Coefficient V_T = -59.9, delta_T = 3.48;
  Initializer V_init = constant_init(-65);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;
};

// dV/dt = (-(V - V_rest) + delta_T exp(min((V - V_T) / delta_T, 20)) + R I) / tau.
// The exponent is held at 20 so that an upstroke stays finite. State: V.
class ExpIF : public Neuron {
 public:
  explicit ExpIF(Shape size, ExpIFOptions options = {});
  Value get_spike() override;

  HiddenState V;

 protected:
  Value step(const Tangent& current) override;

 private:
  ExpIFOptions options_;
  Reset reset_;
};

struct AdExIFOptions {
  Coefficient R = 1, tau = 10, tau_w = 30, V_th = -55, V_reset = -68, V_rest = -65;
  Coefficient V_T = -59.9, delta_T = 3.48, a = 1, b = 1;
  Initializer V_init = constant_init(-65), w_init = constant_init(0);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;
};

// ExpIF with an adaptation current w: w1 = w + b s; dV/dt as ExpIF with -R w1; then
// dw/dt = (a (V_new - V_rest) - w) / tau_w. States: V, w.
class AdExIF : public Neuron {
 public:
  explicit AdExIF(Shape size, AdExIFOptions options = {});
  Value get_spike() override;

  HiddenState V, w;

 protected:
  Value step(const Tangent& current) override;

 private:
  AdExIFOptions options_;
  Reset reset_;
};

}  // namespace braintrace::nn
