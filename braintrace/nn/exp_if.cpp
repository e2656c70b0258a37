// SPDX-License-Identifier: Apache-2.0
// ExpIF and AdExIF.
#include "braintrace/nn/exp_if.h"

#include "braintrace/nn/exp_euler.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

constexpr double max_exponent = 20;

template <class Options>
void check(std::string_view who, const Options& o, const Shape& size) {
  require_positive(who, "tau", o.tau, size);
  require_positive(who, "delta_T", o.delta_T, size);
  require_finite(who, "R", o.R, size);
  require_finite(who, "V_rest", o.V_rest, size);
  require_finite(who, "V_T", o.V_T, size);
  const Coefficient width =
      map(o.V_th, o.V_reset, [](double t, double r) { return t - r; });
  require_positive(who, "V_th - V_reset", width, size);
  require_time_step(who, o.dt);
}

// `current` already holds the adaptation current, if there is one.
template <class Options>
Drift upstroke(const Options& o, const Value& v, const Current& current) {
  const Value exponent = div(v - o.V_T.with(v), o.delta_T.with(v));
  const Value bounded = select(exponent < max_exponent, exponent, max_exponent);
  const Value e = exp(bounded);
  const Value f =
      sub(o.V_rest.with(v), v) + scaled(e, o.delta_T) + scaled(current.I, o.R);
  Value slope = select(exponent < max_exponent, e, 0) - 1;
  if (current.slope) slope = slope + scaled(*current.slope, o.R);
  return {div(f, o.tau.with(v)), div(slope, o.tau.with(v))};
}

}  // namespace

ExpIF::ExpIF(Shape size, ExpIFOptions options)
    : Neuron("ExpIF", size),
      V(size, options.V_init),
      options_(std::move(options)),
      reset_(reset_from("ExpIF", options_.spk_reset)) {
  check("ExpIF", options_, size);
  add("V", V);
}

Value ExpIF::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th, options_.V_reset));
}

Value ExpIF::step(const Tangent& current) {
  const Value v =
      reset_potential(reset_, V.value(), get_spike(), options_.V_th, options_.V_reset);
  const Drift drift = upstroke(options_, v, total_current(current, v));
  V.set(with_deltas(exp_euler(v, drift, options_.dt)));
  return get_spike();
}

AdExIF::AdExIF(Shape size, AdExIFOptions options)
    : Neuron("AdExIF", size),
      V(size, options.V_init),
      w(size, options.w_init),
      options_(std::move(options)),
      reset_(reset_from("AdExIF", options_.spk_reset)) {
  check("AdExIF", options_, size);
  require_positive("AdExIF", "tau_w", options_.tau_w, size);
  require_finite("AdExIF", "a", options_.a, size);
  require_finite("AdExIF", "b", options_.b, size);
  add("V", V);
  add("w", w);
}

Value AdExIF::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th, options_.V_reset));
}

Value AdExIF::step(const Tangent& current) {
  const AdExIFOptions& o = options_;
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
