// SPDX-License-Identifier: Apache-2.0
#pragma once
// What all neurons share: how input arrives, when synapses run, how a spike resets.
// Units: docs/units.md (ms, mV, mA, Ohm, mS).
//
// One step of a neuron:
//   1. the synapses aligned to it run (see projection.h);
//   2. the spike of the state left by the previous step resets it;
//   3. the state is integrated with all currents, each evaluated at the reset potential,
//      so that conductances take part in the linear term of exponential Euler;
//   4. delta inputs are added to the integrated potential;
//   5. the result is the spike of the new state.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braintrace/model/module.h"
#include "braintrace/nn/coefficient.h"
#include "braintrace/nn/surrogate.h"

namespace braintrace::nn {

// A current at a given potential, and its derivative in the potential (absent: zero).
struct Current {
  Value I;
  Tangent slope = {};
};
using CurrentSource = std::function<Current(const Value& V)>;

// Values on their way to a module, used up by its next step. A value left over from a
// trace that was given up is forgotten.
class PendingInputs {
 public:
  void add(Value v) { values_.push_back(std::move(v)); }
  // Their sum and `first`'s; absent when there is nothing. Empties the list.
  Tangent take(Tangent first = {});

 private:
  std::vector<Value> values_;
};

class Neuron : public Module {
 public:
  // The spike of the present state (0 or 1, with the surrogate's derivative).
  virtual Value get_spike() = 0;

  // One step with an external current in mA, or without one.
  Value update(Value current) final;
  Value update();
  using Module::operator();
  Value operator()() { return update(); }

  const Shape& size() const { return size_; }

  // Inputs used up by the next step.
  void add_current(Value current) { currents_.add(std::move(current)); }
  void add_current(CurrentSource current) { once_.push_back(std::move(current)); }
  void add_delta(Value delta) { deltas_.add(std::move(delta)); }  // mV, after integration

  // A lasting source; `name` is for messages and must be new. `module`, if any, runs
  // before each step and stands in the state tree under _before_updates/<name>.
  void add_source(const std::string& name, CurrentSource source, Module* module = nullptr,
                  std::function<void()> before = {});

 protected:
  explicit Neuron(std::string_view kind, Shape size);

  virtual Value step(const Tangent& current) = 0;

  // Sum of the external, the pending and the lasting currents at V. The model's own
  // current, if any, goes in as `current`.
  Current total_current(const Tangent& current, const Value& V);
  // V plus the pending delta inputs.
  Value with_deltas(const Value& V);
  Tangent take_deltas() { return deltas_.take(); }

  const std::string& kind() const { return kind_; }

 private:
  struct Source {
    std::string name;
    CurrentSource current;
    std::function<void()> before;
  };
  struct Container : Module {
    using Module::add;
  };

  std::string kind_;
  Shape size_;
  PendingInputs currents_, deltas_;
  std::vector<CurrentSource> once_;  // used up by the next step
  std::vector<Source> sources_;      // lasting, in the order they were added
  Container before_;                 // registered with the first module it gets
  bool has_container_ = false;
};

// How a spike takes the potential back: soft by a fixed amount, hard to V_reset.
enum class Reset { soft, hard };
Reset reset_from(std::string_view who, std::string_view spk_reset);  // UserError

// V - (theta - V_reset) s, theta = V_th (soft) or the potential itself, not
// differentiated (hard).
Value reset_potential(Reset reset, const Value& V, const Value& spike,
                      const Coefficient& V_th, const Coefficient& V_reset);

// (V - V_th) / (V_th - V_reset), the argument of the spike function.
Value scaled_potential(const Value& V, const Coefficient& V_th,
                       const Coefficient& V_reset);

// dV/dt = (-V + V_rest + R I(V)) / tau by exponential Euler; closed form when no current
// depends on V.
struct LeakyMembrane {
  Coefficient R, tau, V_rest;
  double dt;
};
Value integrate(const LeakyMembrane& m, const Value& V, const Current& current);

void require_size(std::string_view who, const Shape& size);  // UserError
void require_time_step(std::string_view who, double dt);     // UserError

}  // namespace braintrace::nn
