// SPDX-License-Identifier: Apache-2.0
// Hodgkin-Huxley: rates, gates and the membrane by exponential Euler.
#include "braintrace/nn/hh.h"

#include <cmath>

#include <fmt/core.h>

#include "braintrace/nn/exp_euler.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

struct Rates {
  Value alpha, beta;  // opening, closing; 1/ms
};

// x / (1 - e^-x) is 1 / phi(-x): finite where the textbook form is 0/0.
Rates rates_m(const Value& V) {
  return {1 / phi((V + 40) / -10), 4 * exp((V + 65) / -18)};
}
Rates rates_h(const Value& V) {
  return {0.07 * exp((V + 65) / -20), sigmoid((V + 35) / 10)};
}
Rates rates_n(const Value& V) {
  return {0.1 / phi((V + 55) / -10), 0.125 * exp((V + 65) / -80)};
}

double steady(const Rates& r) {
  const double alpha = r.alpha.array().item(), beta = r.beta.array().item();
  return alpha / (alpha + beta);
}

Value open_gate(const Value& x, const Rates& r, double dt) {
  const Value slope = -(r.alpha + r.beta);
  return exp_euler(x, {r.alpha + slope * x, slope}, dt);
}

Initializer steady_init(Rates (*rates)(const Value&), double V) {
  return constant_init(steady(rates(scalar(V, DType::f64))));
}

void check(const HHOptions& o, const Shape& size) {
  BT_REQUIRE(std::isfinite(o.V_init),
             fmt::format("HH: V_init must be finite, got {}", o.V_init));
  const std::pair<std::string_view, const Coefficient*> free[] = {
      {"E_Na", &o.E_Na}, {"g_Na", &o.g_Na}, {"E_K", &o.E_K},
      {"g_K", &o.g_K},   {"E_L", &o.E_L},   {"g_L", &o.g_L}};
  for (const auto& [name, c] : free) require_finite("HH", name, *c, size);
  require_positive("HH", "C", o.C, size);
  require_positive("HH", "V_th", o.V_th, size);
  require_time_step("HH", o.dt);
}

}  // namespace

HH::HH(Shape size, HHOptions options)
    : Neuron("HH", size),
      V(size, constant_init(options.V_init)),
      m(size, steady_init(rates_m, options.V_init)),
      h(size, steady_init(rates_h, options.V_init)),
      n(size, steady_init(rates_n, options.V_init)),
      options_(std::move(options)) {
  check(options_, size);
  add("V", V);
  add("m", m);
  add("h", h);
  add("n", n);
}

Value HH::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th, 0));
}

Value HH::step(const Tangent& current) {
  const HHOptions& o = options_;
  // Read one by one: states are listed in order of first touch.
  const Value v = V.value(), m0 = m.value(), h0 = h.value(), n0 = n.value();
  const Value before = get_spike();
  const Value g_Na = scaled(square(m0) * m0 * h0, o.g_Na);
  const Value g_K = scaled(square(square(n0)), o.g_K);
  const Current total = total_current(current, v);
  const Value f = total.I - g_Na * (v - o.E_Na.with(v)) - g_K * (v - o.E_K.with(v)) -
                  scaled(v - o.E_L.with(v), o.g_L);
  Value slope = -shifted(g_Na + g_K, o.g_L);
  if (total.slope) slope = slope + *total.slope;
  const Drift drift{div(f, o.C.with(v)), div(slope, o.C.with(v))};

  V.set(with_deltas(exp_euler(v, drift, o.dt)));
  m.set(open_gate(m0, rates_m(v), o.dt));
  h.set(open_gate(h0, rates_h(v), o.dt));
  n.set(open_gate(n0, rates_n(v), o.dt));
  return get_spike() * (1 - before);
}

}  // namespace braintrace::nn
