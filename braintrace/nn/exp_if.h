// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exponential integrate-and-fire neurons, without and with adaptation.
#include "braintrace/nn/nonlinear_if.h"

namespace braintrace::nn {

struct ExpIFOptions {
  static constexpr std::string_view kind = "ExpIF";
  Coefficient R = 1, tau = 10, V_th = -30, V_reset = -68, V_rest = -65;
  Coefficient V_T = -59.9, delta_T = 3.48;
  Initializer V_init = constant_init(-65);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;

  Drift upstroke(const Value& V) const;
  void require_upstroke(const Shape& size) const;
};

struct AdExIFOptions {
  static constexpr std::string_view kind = "AdExIF";
  Coefficient R = 1, tau = 10, tau_w = 30, V_th = -55, V_reset = -68, V_rest = -65;
  Coefficient V_T = -59.9, delta_T = 3.48, a = 1, b = 1;
  Initializer V_init = constant_init(-65), w_init = constant_init(0);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;

  Drift upstroke(const Value& V) const;
  void require_upstroke(const Shape& size) const;
};

// dV/dt = (-(V - V_rest) + delta_T exp(min((V - V_T) / delta_T, 20)) + R I) / tau.
// The exponent is held at 20 so that an upstroke stays finite. State: V.
using ExpIF = NonlinearIF<ExpIFOptions>;

// ExpIF with an adaptation current w: w1 = w + b s; dV/dt as ExpIF with -R w1; then
// dw/dt = (a (V_new - V_rest) - w) / tau_w. States: V, w.
using AdExIF = AdaptiveIF<AdExIFOptions>;

extern template class NonlinearIF<ExpIFOptions>;
extern template class AdaptiveIF<AdExIFOptions>;

}  // namespace braintrace::nn
