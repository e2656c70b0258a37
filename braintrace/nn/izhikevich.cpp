// SPDX-License-Identifier: Apache-2.0
// Izhikevich's neuron by exponential Euler.
#include "braintrace/nn/izhikevich.h"

#include "braintrace/nn/exp_euler.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

constexpr std::string_view who = "Izhikevich";

void check(const IzhikevichOptions& o, const Shape& size) {
  const std::pair<std::string_view, const Coefficient*> free[] = {
      {"p1", &o.p1}, {"p2", &o.p2}, {"p3", &o.p3}, {"b", &o.b}, {"d", &o.d}, {"R", &o.R}};
  for (const auto& [name, c] : free) require_finite(who, name, *c, size);
  require_positive(who, "a", o.a, size);
  require_positive(who, "tau", o.tau, size);
  const Coefficient width = map(o.V_th, o.c, [](double t, double r) { return t - r; });
  require_positive(who, "V_th - c", width, size);
  require_time_step(who, o.dt);
}

}  // namespace

Izhikevich::Izhikevich(Shape size, IzhikevichOptions options)
    : Neuron(who, size),
      V(size, options.V_init),
      u(size, options.u_init),
      options_(std::move(options)),
      reset_(reset_from(who, options_.spk_reset)) {
  check(options_, size);
  add("V", V);
  add("u", u);
}

Value Izhikevich::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th, options_.c));
}

Value Izhikevich::step(const Tangent& current) {
  const IzhikevichOptions& o = options_;
  const Value spike = get_spike();
  const Value v = reset_potential(reset_, V.value(), spike, o.V_th, o.c);
  const Value raised = u.value() + scaled(spike, o.d);
  const Coefficient gain = map(o.R, o.tau, [](double R, double tau) { return R / tau; });
  const Current total = total_current(current, v);
  const Value f = shifted(scaled(square(v), o.p1) + scaled(v, o.p2), o.p3) - raised +
                  scaled(total.I, gain);
  const Coefficient p1_twice = map(o.p1, [](double p) { return 2 * p; });
  Value slope = shifted(scaled(v, p1_twice), o.p2);
  if (total.slope) slope = slope + scaled(*total.slope, gain);
  V.set(with_deltas(exp_euler(v, {f, slope}, o.dt)));
  const Coefficient tau_u = map(o.a, [](double a) { return 1 / a; });
  u.set(relax(raised, scaled(V.value(), o.b), decay_of(o.dt, tau_u)));
  return get_spike();
}

}  // namespace braintrace::nn
