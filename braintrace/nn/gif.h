// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generalised integrate-and-fire neurons: Gif with internal currents and a moving
// threshold, GIF with one slow adaptation current.
#include "braintrace/nn/neuron.h"

namespace braintrace::nn {

struct GifOptions {
  Coefficient R = 20, tau = 20, V_rest = -70, V_reset = -70;
  Coefficient V_th_inf = -50, V_th_reset = -60;
  Coefficient a = 0, b = 0.01, k1 = 0.2, k2 = 0.02;  // 1/ms
  Coefficient R1 = 0, R2 = 1, A1 = 0, A2 = 0;
  Initializer V_init = constant_init(-70), V_th_init = constant_init(-50);
  Initializer I1_init = constant_init(0), I2_init = constant_init(0);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;
};

// At a spike I_j -> R_j I_j + A_j and V_th -> max(V_th_reset, V_th). Then
//   dI_j/dt = -k_j I_j;   dV_th/dt = a (V - V_rest) - b (V_th - V_th_inf);
//   dV/dt = (-(V - V_rest) + R (I1 + I2 + I)) / tau
// where V uses the decayed I1, I2 and V_th the reset but not yet integrated V.
// States: V, I1, I2, V_th.
class Gif : public Neuron {
 public:
  explicit Gif(Shape size, GifOptions options = {});
  Value get_spike() override;

  HiddenState V, I1, I2, V_th;

 protected:
  Value step(const Tangent& current) override;

 private:
  GifOptions options_;
  Reset reset_;
};

struct GIFOptions {
  Coefficient R = 1, tau = 20, tau_I2 = 50, A2 = 0, V_rest = 0, V_th_inf = 1;
  Initializer V_init = constant_init(0), I2_init = constant_init(0);
  Surrogate spk_fun = Surrogate("ReluGrad");
  double dt = 1;
};

// V1 = V - V_th s, I2 <- (I2 - A2 s) e^{-dt/tau_I2} with s not differentiated;
// dV/dt = (-V + V_rest + R (I + I2)) / tau. Returns V - V_th standardised over the last
// axis (an analogue readout), not spikes. States: V, I2.
class GIF : public Neuron {
 public:
  explicit GIF(Shape size, GIFOptions options = {});
  Value get_spike() override;

  HiddenState V, I2;

 protected:
  Value step(const Tangent& current) override;

 private:
  GIFOptions options_;
};

}  // namespace braintrace::nn
