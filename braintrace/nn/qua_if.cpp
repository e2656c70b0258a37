// SPDX-License-Identifier: Apache-2.0
// QuaIF and AdQuaIF.
#include "braintrace/nn/qua_if.h"

#include "braintrace/nn/exp_euler.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

template <class Options>
void check(std::string_view who, const Options& o, const Shape& size) {
  require_positive(who, "tau", o.tau, size);
  require_finite(who, "R", o.R, size);
  require_finite(who, "V_rest", o.V_rest, size);
  require_finite(who, "V_c", o.V_c, size);
  require_finite(who, "c", o.c, size);
  const Coefficient width =
      map(o.V_th, o.V_reset, [](double t, double r) { return t - r; });
  require_positive(who, "V_th - V_reset", width, size);
  require_time_step(who, o.dt);
}

// `current` already holds the adaptation current, if there is one.
template <class Options>
Drift upstroke(const Options& o, const Value& v, const Current& current) {
  const Value above_rest = v - o.V_rest.with(v);
  const Value above_critical = v - o.V_c.with(v);
  const Value f = scaled(above_rest * above_critical, o.c) + scaled(current.I, o.R);
  Value slope = scaled(above_rest + above_critical, o.c);
  if (current.slope) slope = slope + scaled(*current.slope, o.R);
  return {div(f, o.tau.with(v)), div(slope, o.tau.with(v))};
}

}  // namespace

QuaIF::QuaIF(Shape size, QuaIFOptions options)
    : Neuron("QuaIF", size),
      V(size, options.V_init),
      options_(std::move(options)),
      reset_(reset_from("QuaIF", options_.spk_reset)) {
  check("QuaIF", options_, size);
  add("V", V);
}

Value QuaIF::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th, options_.V_reset));
}

Value QuaIF::step(const Tangent& current) {
  const Value v =
      reset_potential(reset_, V.value(), get_spike(), options_.V_th, options_.V_reset);
  const Drift drift = upstroke(options_, v, total_current(current, v));
  V.set(with_deltas(exp_euler(v, drift, options_.dt)));
  return get_spike();
}

AdQuaIF::AdQuaIF(Shape size, AdQuaIFOptions options)
    : Neuron("AdQuaIF", size),
      V(size, options.V_init),
      w(size, options.w_init),
      options_(std::move(options)),
      reset_(reset_from("AdQuaIF", options_.spk_reset)) {
  check("AdQuaIF", options_, size);
  require_positive("AdQuaIF", "tau_w", options_.tau_w, size);
  require_finite("AdQuaIF", "a", options_.a, size);
  require_finite("AdQuaIF", "b", options_.b, size);
  add("V", V);
  add("w", w);
}

Value AdQuaIF::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th, options_.V_reset));
}

Value AdQuaIF::step(const Tangent& current) {
  const AdQuaIFOptions& o = options_;
  const Value spike = get_spike();
  const Value v = reset_potential(reset_, V.value(), spike, o.V_th, o.V_reset);
  const Value raised = w.value() + scaled(spike, o.b);
  Current total = total_current(current, v);
  total.I = total.I - raised;
  V.set(with_deltas(exp_euler(v, upstroke(o, v, total), o.dt)));
  const Value drive = scaled(V.value() - o.V_rest.with(v), o.a);
  w.set(relax(raised, drive, decay_of(o.dt, o.tau_w)));
  return get_spike();
}

}  // namespace braintrace::nn
