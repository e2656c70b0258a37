// SPDX-License-Identifier: Apache-2.0
#pragma once
// Members of NonlinearIF and AdaptiveIF, for the files that instantiate them.
#include "braintrace/nn/nonlinear_if.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace internal {

template <class Options>
void require_membrane(const Options& o, const Shape& size) {
  const std::string_view who = Options::kind;
  require_positive(who, "tau", o.tau, size);
  require_finite(who, "R", o.R, size);
  require_finite(who, "V_rest", o.V_rest, size);
  o.require_upstroke(size);
  const Coefficient width =
      map(o.V_th, o.V_reset, [](double t, double r) { return t - r; });
  require_positive(who, "V_th - V_reset", width, size);
  require_time_step(who, o.dt);
}

template <class Options>
Value integrate(const Options& o, const Value& v, const Current& current) {
  const Drift law = o.upstroke(v);
  const Value f = law.f + scaled(current.I, o.R);
  const Value slope =
      current.slope ? *law.slope + scaled(*current.slope, o.R) : *law.slope;
  return exp_euler(v, {div(f, o.tau.with(v)), div(slope, o.tau.with(v))}, o.dt);
}

}  // namespace internal

template <class Options>
NonlinearIF<Options>::NonlinearIF(Shape size, Options options)
    : Neuron(Options::kind, size),
      V(size, options.V_init),
      options_(std::move(options)),
      reset_(reset_from(Options::kind, options_.spk_reset)) {
  internal::require_membrane(options_, size);
  add("V", V);
}

template <class Options>
Value NonlinearIF<Options>::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th, options_.V_reset));
}

template <class Options>
Value NonlinearIF<Options>::step(const Tangent& current) {
  const Value v =
      reset_potential(reset_, V.value(), get_spike(), options_.V_th, options_.V_reset);
  V.set(with_deltas(internal::integrate(options_, v, total_current(current, v))));
  return get_spike();
}

template <class Options>
AdaptiveIF<Options>::AdaptiveIF(Shape size, Options options)
    : Neuron(Options::kind, size),
      V(size, options.V_init),
      w(size, options.w_init),
      options_(std::move(options)),
      reset_(reset_from(Options::kind, options_.spk_reset)) {
  internal::require_membrane(options_, size);
  require_positive(Options::kind, "tau_w", options_.tau_w, size);
  require_finite(Options::kind, "a", options_.a, size);
  require_finite(Options::kind, "b", options_.b, size);
  add("V", V);
  add("w", w);
}

template <class Options>
Value AdaptiveIF<Options>::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th, options_.V_reset));
}

template <class Options>
Value AdaptiveIF<Options>::step(const Tangent& current) {
  const Options& o = options_;
  const Value spike = get_spike();
  const Value v = reset_potential(reset_, V.value(), spike, o.V_th, o.V_reset);
  const Value raised = w.value() + scaled(spike, o.b);
  Current total = total_current(current, v);
  total.I = total.I - raised;
  V.set(with_deltas(internal::integrate(o, v, total)));
  const Value drive = scaled(V.value() - o.V_rest.with(v), o.a);
  w.set(relax(raised, drive, decay_of(o.dt, o.tau_w)));
  return get_spike();
}

}  // namespace braintrace::nn
