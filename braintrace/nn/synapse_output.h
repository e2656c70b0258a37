// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a conductance g to the current it drives into a neuron at potential V, with the
// derivative in V that exponential Euler needs. g in mS, V and E in mV, I in mA.
#include <functional>
#include <string>

#include "braintrace/nn/neuron.h"

namespace braintrace::nn {

class SynapseOutput {
 public:
  using Function = std::function<Current(const Value& g, const Value& V)>;
  // `name` becomes part of the state path of an aligned synapse: "COBA_E=1.5V".
  SynapseOutput(std::string name, Function f)
      : name_(std::move(name)), f_(std::move(f)) {}

  Current operator()(const Value& g, const Value& V) const { return f_(g, V); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Function f_;
};

// I = g scale; the scale (in V) is the driving force that does not change.
SynapseOutput CUBA(double scale = 1);

// mS * mV = uA, so a conductance in mS is scaled by 1e-3; 1 when g is in S.
struct COBAOptions {
  double scale = 1e-3;
};
// I = scale g (E - V)
SynapseOutput COBA(double E, COBAOptions options = {});

struct MgBlockOptions {
  double E = 0, cc_Mg = 1.2, alpha = 0.062, beta = 3.57, V_offset = 0;
  double scale = 1e-3;
};
// I = scale g (E - V) / (1 + cc_Mg / beta exp(alpha (V_offset - V)))
SynapseOutput MgBlock(MgBlockOptions options = {});

}  // namespace braintrace::nn
