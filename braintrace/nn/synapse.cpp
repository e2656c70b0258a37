// SPDX-License-Identifier: Apache-2.0
// Expon, DualExpon, Alpha, STP and STD.
#include "braintrace/nn/synapse.h"

#include <cmath>

#include <fmt/core.h>

#include "braintrace/nn/exp_euler.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

Value plus(const Value& x, const Tangent& input) { return input ? x + *input : x; }

Coefficient dual_gain(const DualExponOptions& o) {
  const auto peak = [](double td, double tr) {
    return td / (td - tr) * std::pow(tr / td, tr / (tr - td));
  };
  if (!o.normalize) return o.amplitude;
  return map(o.amplitude, map(o.tau_decay, o.tau_rise, peak),
             [](double a, double k) { return a * k; });
}

void require_distinct(const DualExponOptions& o) {
  const Coefficient gap =
      map(o.tau_decay, o.tau_rise, [](double d, double r) { return d - r; });
  for (const double g : gap.values().to_doubles())
    BT_REQUIRE(g != 0,
               "DualExpon: tau_decay and tau_rise must differ; use Alpha when "
               "they are equal");
}

Initializer start_at(const Coefficient& c) {
  return [c](RngKey, const Shape& shape, DType dtype) {
    return c.values().astype(dtype).broadcast_to(shape).contiguous();
  };
}

}  // namespace

Synapse::Synapse(std::string_view kind, const Shape& size, double dt) : kind_(kind) {
  require_size(kind, size);
  require_time_step(kind, dt);
}

Expon::Expon(Shape size, ExponOptions options)
    : Synapse("Expon", size, options.dt),
      g(size, options.g_init),
      left_(decay_of(options.dt, options.tau)) {
  require_positive("Expon", "tau", options.tau, size);
  add("g", g);
}

Value Expon::step(const Tangent& input) {
  g.set(plus(scaled(g.value(), left_), input));
  return g.value();
}

DualExpon::DualExpon(Shape size, DualExponOptions options)
    : Synapse("DualExpon", size, options.dt),
      g_rise(size, options.g_init),
      g_decay(size, options.g_init),
      left_rise_(decay_of(options.dt, options.tau_rise)),
      left_decay_(decay_of(options.dt, options.tau_decay)),
      gain_(dual_gain(options)) {
  require_positive("DualExpon", "tau_rise", options.tau_rise, size);
  require_positive("DualExpon", "tau_decay", options.tau_decay, size);
  require_finite("DualExpon", "amplitude", options.amplitude, size);
  require_distinct(options);
  add("g_rise", g_rise);
  add("g_decay", g_decay);
}

Value DualExpon::value() { return scaled(g_decay.value() - g_rise.value(), gain_); }

Value DualExpon::step(const Tangent& input) {
  g_rise.set(plus(scaled(g_rise.value(), left_rise_), input));
  g_decay.set(plus(scaled(g_decay.value(), left_decay_), input));
  return value();
}

Alpha::Alpha(Shape size, AlphaOptions options)
    : Synapse("Alpha", size, options.dt),
      g(size, options.g_init),
      h(size, options.g_init),
      left_(decay_of(options.dt, options.tau)) {
  require_positive("Alpha", "tau", options.tau, size);
  add("g", g);
  add("h", h);
}

Value Alpha::step(const Tangent& input) {
  const Value old = h.value();
  h.set(plus(scaled(old, left_), input));
  g.set(relax(g.value(), old, left_));
  return g.value();
}

STP::STP(Shape size, STPOptions options)
    : u(size, start_at(options.U)), x(size, constant_init(1)), options_(options) {
  require_size("STP", size);
  require_positive("STP", "U", options_.U, size);
  require_positive("STP", "tau_f", options_.tau_f, size);
  require_positive("STP", "tau_d", options_.tau_d, size);
  require_time_step("STP", options_.dt);
  add("u", u);
  add("x", x);
}

Value STP::update(Value spikes) {
  const STPOptions& o = options_;
  const Value u0 = u.value(), x0 = x.value();
  const Value u1 = scaled(u0, decay_of(o.dt, o.tau_f)) + scaled(spikes, o.U) * (1 - u0);
  const Value x1 = relax(x0, Coefficient(1), decay_of(o.dt, o.tau_d));
  u.set(u1);
  x.set(x1 - spikes * u1 * x0);
  return u1 * x1 * spikes;
}

STD::STD(Shape size, STDOptions options) : x(size, constant_init(1)), options_(options) {
  require_size("STD", size);
  require_positive("STD", "U", options_.U, size);
  require_positive("STD", "tau", options_.tau, size);
  require_time_step("STD", options_.dt);
  add("x", x);
}

Value STD::update(Value spikes) {
  const Value x0 = x.value();
  const Value x1 = relax(x0, Coefficient(1), decay_of(options_.dt, options_.tau));
  x.set(x1 - scaled(spikes, options_.U) * x0);
  return x1 * spikes;
}

}  // namespace braintrace::nn
