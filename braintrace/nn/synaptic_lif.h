// SPDX-License-Identifier: Apache-2.0
#pragma once
// LIF neurons with a synapse built in: delta inputs reach the conductance g, not V.
#include "braintrace/nn/lif.h"

namespace braintrace::nn {

struct CubaLIFOptions {
  LIFOptions membrane = {};
  Coefficient tau_syn = 5;
  Initializer g_init = constant_init(0);
};

// g <- g e^{-dt/tau_syn} + deltas;  LIF with I = g (mA). States: V, g.
class CubaLIF : public LIF {
 public:
  explicit CubaLIF(Shape size, CubaLIFOptions options = {});

  HiddenState g;

 protected:
  Value step(const Tangent& current) override;

 private:
  Coefficient tau_syn_;
};

struct CobaLIFOptions {
  LIFOptions membrane = {};
  Coefficient tau_syn = 5, E = 0;
  double scale = 1e-3;  // mS * mV = uA; 1 when g is in S
  Initializer g_init = constant_init(0);
};

// g as CubaLIF;  LIF with I = scale g (E - V). States: V, g.
class CobaLIF : public LIF {
 public:
  explicit CobaLIF(Shape size, CobaLIFOptions options = {});

  HiddenState g;

 protected:
  Value step(const Tangent& current) override;

 private:
  Coefficient tau_syn_, E_;
  double scale_;
};

}  // namespace braintrace::nn
