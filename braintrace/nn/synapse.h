// SPDX-License-Identifier: Apache-2.0
#pragma once
// Synapses: spikes or weighted spikes in, a conductance or current out.
// Units: docs/units.md.
#include "braintrace/nn/neuron.h"

namespace braintrace::nn {

// A synapse takes input through update(x), through add_delta before a step, or both.
class Synapse : public Module {
 public:
  Value update(Value x) final { return step(deltas_.take(std::move(x))); }
  Value update() { return step(deltas_.take()); }
  using Module::operator();
  Value operator()() { return update(); }

  void add_delta(Value x) { deltas_.add(std::move(x)); }
  virtual Value value() = 0;  // what the last step returned
  const std::string& kind() const { return kind_; }

 protected:
  Synapse(std::string_view kind, const Shape& size, double dt);
  virtual Value step(const Tangent& input) = 0;

 private:
  std::string kind_;
  PendingInputs deltas_;
};

struct ExponOptions {
  Coefficient tau = 8;
  Initializer g_init = constant_init(0);
  double dt = 1;
};

// g <- g e^{-dt/tau} + x. State: g.
class Expon : public Synapse {
 public:
  explicit Expon(Shape size, ExponOptions options = {});
  Value value() override { return g.value(); }

  HiddenState g;

 protected:
  Value step(const Tangent& input) override;

 private:
  Coefficient left_;
};

struct DualExponOptions {
  Coefficient tau_decay = 10, tau_rise = 1, amplitude = 1;
  bool normalize = true;  // peak response to one spike = amplitude
  Initializer g_init = constant_init(0);
  double dt = 1;
};

// Both parts decay, each with its time constant, and get the same input; returns
// amplitude k (g_decay - g_rise), k = td/(td - tr) (tr/td)^(tr/(tr - td)).
// States: g_rise, g_decay.
class DualExpon : public Synapse {
 public:
  explicit DualExpon(Shape size, DualExponOptions options = {});
  Value value() override;

  HiddenState g_rise, g_decay;

 protected:
  Value step(const Tangent& input) override;

 private:
  Coefficient left_rise_, left_decay_, gain_;
};

struct AlphaOptions {
  Coefficient tau = 8;
  Initializer g_init = constant_init(0);
  double dt = 1;
};

// dg/dt = (h - g) / tau with the old h; h <- h e^{-dt/tau} + x. Returns g. States: g, h.
class Alpha : public Synapse {
 public:
  explicit Alpha(Shape size, AlphaOptions options = {});
  Value value() override { return g.value(); }

  HiddenState g, h;

 protected:
  Value step(const Tangent& input) override;

 private:
  Coefficient left_;
};

struct STPOptions {
  Coefficient U = 0.15, tau_f = 1500, tau_d = 200;
  double dt = 1;
};

// Short-term plasticity of spikes p: u1 = u e^{-dt/tau_f} + p U (1 - u); x1 = x relaxed
// to 1 with tau_d; x <- x1 - p u1 x. Returns u1 x1 p. States: u, x.
class STP : public Module {
 public:
  explicit STP(Shape size, STPOptions options = {});
  Value update(Value spikes) override;

  HiddenState u, x;

 private:
  STPOptions options_;
};

struct STDOptions {
  Coefficient U = 0.07, tau = 200;
  double dt = 1;
};

// Short-term depression of spikes p: x1 = x relaxed to 1; x <- x1 - p U x. Returns x1 p.
// State: x.
class STD : public Module {
 public:
  explicit STD(Shape size, STDOptions options = {});
  Value update(Value spikes) override;

  HiddenState x;

 private:
  STDOptions options_;
};

}  // namespace braintrace::nn
