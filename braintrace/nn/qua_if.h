// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quadratic integrate-and-fire neurons, without and with adaptation.
#include "braintrace/nn/nonlinear_if.h"

namespace braintrace::nn {

struct QuaIFOptions {
  static constexpr std::string_view kind = "QuaIF";
  Coefficient R = 1, tau = 10, V_th = -30, V_reset = -68, V_rest = -65;
  Coefficient V_c = -50, c = 0.07;  // critical potential; c in 1/mV
  Initializer V_init = constant_init(-65);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;

  Drift upstroke(const Value& V) const;
  void require_upstroke(const Shape& size) const;
};

struct AdQuaIFOptions {
  static constexpr std::string_view kind = "AdQuaIF";
  Coefficient R = 1, tau = 10, tau_w = 10, V_th = -30, V_reset = -68, V_rest = -65;
  Coefficient V_c = -50, c = 0.07, a = 1, b = 0.1;
  Initializer V_init = constant_init(-65), w_init = constant_init(0);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;

  Drift upstroke(const Value& V) const;
  void require_upstroke(const Shape& size) const;
};

// dV/dt = (c (V - V_rest) (V - V_c) + R I) / tau. State: V.
using QuaIF = NonlinearIF<QuaIFOptions>;

// QuaIF with an adaptation current w: w1 = w + b s; dV/dt as QuaIF with -R w1; then
// dw/dt = (a (V_new - V_rest) - w) / tau_w. States: V, w.
using AdQuaIF = AdaptiveIF<AdQuaIFOptions>;

extern template class NonlinearIF<QuaIFOptions>;
extern template class AdaptiveIF<AdQuaIFOptions>;

}  // namespace braintrace::nn
