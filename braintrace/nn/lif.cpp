// SPDX-License-Identifier: Apache-2.0
// IF, LIF, LIFRef and ALIF.
#include "braintrace/nn/lif.h"

#include <cmath>

#include <fmt/core.h>

#include "braintrace/nn/exp_euler.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

void check(std::string_view who, const LIFOptions& o, const Shape& size) {
  require_positive(who, "tau", o.tau, size);
  require_finite(who, "R", o.R, size);
  require_finite(who, "V_th", o.V_th, size);
  require_finite(who, "V_reset", o.V_reset, size);
  require_finite(who, "V_rest", o.V_rest, size);
  const Coefficient width =
      map(o.V_th, o.V_reset, [](double t, double r) { return t - r; });
  require_positive(who, "V_th - V_reset", width, size);
  require_time_step(who, o.dt);
}

LIFOptions membrane_of(const IFOptions& o) {
  return {.R = o.R,
          .tau = o.tau,
          .V_th = o.V_th,
          .V_init = o.V_init,
          .spk_fun = o.spk_fun,
          .spk_reset = o.spk_reset,
          .dt = o.dt};
}

LIFOptions membrane_of(const ALIFOptions& o) {
  return {.R = o.R,
          .tau = o.tau,
          .V_th = o.V_th,
          .V_reset = o.V_reset,
          .V_rest = o.V_rest,
          .V_init = o.V_init,
          .spk_fun = o.spk_fun,
          .spk_reset = o.spk_reset,
          .dt = o.dt};
}

constexpr double long_ago = 1e7;  // ms

}  // namespace

LIF::LIF(Shape size, LIFOptions options)
    : LIF("LIF", std::move(size), std::move(options)) {}

LIF::LIF(std::string_view kind, Shape size, LIFOptions options)
    : Neuron(kind, size),
      V(size, options.V_init),
      options_(std::move(options)),
      reset_(reset_from(kind, options_.spk_reset)) {
  check(kind, options_, size);
  add("V", V);
}

Value LIF::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th, options_.V_reset));
}

Value LIF::reset(const Value& v, const Value& spike) const {
  return reset_potential(reset_, v, spike, options_.V_th, options_.V_reset);
}

Value LIF::integrate_membrane(const Value& v, const Current& current) const {
  return integrate({options_.R, options_.tau, options_.V_rest, options_.dt}, v, current);
}

Value LIF::step(const Tangent& current) {
  const Value v = reset(V.value(), get_spike());
  V.set(with_deltas(integrate_membrane(v, total_current(current, v))));
  return get_spike();
}

IF::IF(Shape size, IFOptions options)
    : LIF("IF", std::move(size), membrane_of(options)) {}

LIFRef::LIFRef(Shape size, LIFRefOptions options)
    : LIF("LIFRef", size, std::move(options.membrane)),
      since_spike(size, constant_init(long_ago)),
      tau_ref_(options.tau_ref) {
  BT_REQUIRE(std::isfinite(tau_ref_) && tau_ref_ >= 0,
             fmt::format("LIFRef: tau_ref must not be negative, got {}", tau_ref_));
  add("since_spike", since_spike);
}

Value LIFRef::step(const Tangent& current) {
  const Value v = reset(V.value(), get_spike());
  const Value moved = with_deltas(integrate_membrane(v, total_current(current, v)));
  const Value since = since_spike.value() + options().dt;
  V.set(select(since < tau_ref_, v, moved));
  const Value spiked = V.value() >= options().V_th.with(V.value());
  since_spike.set(stop_gradient(select(spiked, 0, since)));
  return get_spike();
}

ALIF::ALIF(Shape size, ALIFOptions options)
    : LIF("ALIF", size, membrane_of(options)),
      a(size, options.a_init),
      tau_a_(options.tau_a),
      beta_(options.beta) {
  require_positive("ALIF", "tau_a", tau_a_, size);
  require_finite("ALIF", "beta", beta_, size);
  add("a", a);
}

Value ALIF::get_spike() {
  const LIFOptions& o = options();
  const Value v = V.value();  // read before a: states are listed in order of first touch
  const Value above = v - scaled(a.value(), beta_);
  return o.spk_fun(scaled_potential(above, o.V_th, o.V_reset));
}

Value ALIF::step(const Tangent& current) {
  const Value spike = get_spike();
  const Value v = reset(V.value(), spike);
  const Value raised = a.value() + spike;
  V.set(with_deltas(integrate_membrane(v, total_current(current, v))));
  a.set(scaled(raised, decay_of(options().dt, tau_a_)));
  return get_spike();
}

}  // namespace braintrace::nn
