// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readouts that integrate their input.
#include "braintrace/model/module.h"
#include "braintrace/nn/coefficient.h"
#include "braintrace/nn/initializers.h"
#include "braintrace/nn/neuron.h"
#include "braintrace/nn/surrogate.h"

namespace braintrace::nn {

struct LeakyRateReadoutOptions {
  Coefficient tau = 5;  // ms
  double dt = 1;        // ms
  Initializer w_init = init::kaiming_normal(init::plain());
  Initializer r_init = init::zero();
};

// r' = exp(-dt / tau) r + x W. Returns r'. No bias, no (1 - decay) factor.
// Parameter 'W' [in, out]; it reaches the state r, so it is learnt online.
class LeakyRateReadout : public Module {
 public:
  LeakyRateReadout(std::int64_t in_size, std::int64_t out_size,
                   LeakyRateReadoutOptions options = {});
  Value update(Value x) override;

  ParamState W;
  HiddenState r;

 private:
  std::int64_t in_size_;
  Coefficient decay_;
};

struct LeakySpikeReadoutOptions {
  Coefficient tau = 5;   // ms
  Coefficient V_th = 1;  // mV
  double dt = 1;         // ms
  Initializer w_init = init::kaiming_normal(init::plain());
  Initializer V_init = init::zero();
  Surrogate spk_fun = Surrogate("ReluGrad");
  std::string spk_reset = "soft";  // or "hard"
};

// s = spike((V - V_th) / V_th);  V1 = V - V_th s (hard: V - stop_gradient(V) s);
// V' = e V1 + (1 - e) x W, e = exp(-dt / tau). Returns the spike of V'.
// Parameter 'W' [in, out].
class LeakySpikeReadout : public Module {
 public:
  LeakySpikeReadout(std::int64_t in_size, std::int64_t out_size,
                    LeakySpikeReadoutOptions options = {});
  Value update(Value x) override;

  ParamState W;
  HiddenState V;

 private:
  Value spike(const Value& v) const;

  std::int64_t in_size_;
  LeakySpikeReadoutOptions options_;
  Reset reset_;
  Coefficient decay_;
};

}  // namespace braintrace::nn
