// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readouts that integrate their input.
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::nn {

struct LeakyRateReadoutOptions {
  Array tau = scalar(5, DType::f64);  // ms; one, or one per output
  double dt = 1;                      // ms
  Initializer w_init = init::kaiming_normal(init::plain());
  Initializer r_init = init::zero();
};

// r' = exp(-dt / tau) r + x W. Returns r'. No bias, no (1 - decay) factor.
// Parameter 'W' [in, out]; W reaches the state r, so it is learnt online.
class LeakyRateReadout : public Module {
 public:
  LeakyRateReadout(std::int64_t in_size, std::int64_t out_size,
                   LeakyRateReadoutOptions options = {});
  Value update(Value x) override;

  ParamState W;
  HiddenState r;

 private:
  std::int64_t in_size_;
  Array decay_;
};

}  // namespace braintrace::nn
