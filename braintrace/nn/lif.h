// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leaky integrate-and-fire family.
#include "braintrace/nn/neuron.h"

namespace braintrace::nn {

struct LIFOptions {
  Coefficient R = 1, tau = 5, V_th = 1, V_reset = 0, V_rest = 0;
  Initializer V_init = constant_init(0);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;
};

// dV/dt = (-V + V_rest + R I) / tau; spike where V >= V_th. State: V.
class LIF : public Neuron {
 public:
  explicit LIF(Shape size, LIFOptions options = {});
  Value get_spike() override;

  HiddenState V;

 protected:
  LIF(std::string_view kind, Shape size, LIFOptions options);
  Value step(const Tangent& current) override;
  Value reset(const Value& v, const Value& spike) const;
  Value integrate_membrane(const Value& v, const Current& current) const;
  const LIFOptions& options() const { return options_; }

 private:
  LIFOptions options_;
  Reset reset_;
};

struct IFOptions {
  Coefficient R = 1, tau = 5, V_th = 1;
  Initializer V_init = constant_init(0);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;
};

// dV/dt = (-V + R I) / tau: leaky in spite of its name; resets to 0. State: V.
class IF : public LIF {
 public:
  explicit IF(Shape size, IFOptions options = {});
};

struct LIFRefOptions {
  LIFOptions membrane = {};
  double tau_ref = 5;
};

// LIF that keeps its potential until tau_ref has passed since its last spike:
// V' = V where since_spike < tau_ref, else as LIF; since_spike' = 0 at a spike, else
// since_spike + dt.
// States: V; since_spike (ms, short term, not differentiated).
class LIFRef : public LIF {
 public:
  explicit LIFRef(Shape size, LIFRefOptions options = {});

  ShortTermState since_spike;

 protected:
  Value step(const Tangent& current) override;

 private:
  double tau_ref_;
};

struct ALIFOptions {
  Coefficient R = 1, tau = 5, V_th = 1, V_reset = 0, V_rest = 0;
  Coefficient tau_a = 100, beta = 0.1;
  Initializer V_init = constant_init(0), a_init = constant_init(0);
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";
  double dt = 1;
};

// LIF with a threshold V_th + beta a that rises with each spike:
//   a1 = a + s, da/dt = -a / tau_a. The reset uses V_th alone. States: V, a.
class ALIF : public LIF {
 public:
  explicit ALIF(Shape size, ALIFOptions options = {});
  Value get_spike() override;

  HiddenState a;

 protected:
  Value step(const Tangent& current) override;

 private:
  Coefficient tau_a_, beta_;
};

}  // namespace braintrace::nn
