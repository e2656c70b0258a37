// SPDX-License-Identifier: Apache-2.0
// Gif and GIF.
#include "braintrace/nn/gif.h"

#include "braintrace/nn/exp_euler.h"
#include "braintrace/nn/norm.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

void check(const GifOptions& o, const Shape& size) {
  const std::pair<std::string_view, const Coefficient*> free[] = {
      {"R", &o.R},
      {"V_rest", &o.V_rest},
      {"V_reset", &o.V_reset},
      {"a", &o.a},
      {"V_th_inf", &o.V_th_inf},
      {"V_th_reset", &o.V_th_reset},
      {"R1", &o.R1},
      {"R2", &o.R2},
      {"A1", &o.A1},
      {"A2", &o.A2}};
  for (const auto& [name, c] : free) require_finite("Gif", name, *c, size);
  require_positive("Gif", "tau", o.tau, size);
  require_positive("Gif", "b", o.b, size);
  require_positive("Gif", "k1", o.k1, size);
  require_positive("Gif", "k2", o.k2, size);
  require_time_step("Gif", o.dt);
}

Coefficient inverse(const Coefficient& rate) {
  return map(rate, [](double k) { return 1 / k; });
}

// old + s (fresh - old)
Value blend(const Value& old, const Value& spike, const Value& fresh) {
  return old + spike * (fresh - old);
}

}  // namespace

Gif::Gif(Shape size, GifOptions options)
    : Neuron("Gif", size),
      V(size, options.V_init),
      I1(size, options.I1_init),
      I2(size, options.I2_init),
      V_th(size, options.V_th_init),
      options_(std::move(options)),
      reset_(reset_from("Gif", options_.spk_reset)) {
  check(options_, size);
  add("V", V);
  add("I1", I1);
  add("I2", I2);
  add("V_th", V_th);
}

Value Gif::get_spike() {
  const Value v = V.value(), threshold = V_th.value();
  return options_.spk_fun((v - threshold) / (threshold - options_.V_reset.with(v)));
}

Value Gif::step(const Tangent& current) {
  const GifOptions& o = options_;
  const Value spike = get_spike(), threshold = V_th.value(), before = V.value();
  const Value theta = reset_ == Reset::soft ? threshold : stop_gradient(before);
  const Value v = before - (theta - o.V_reset.with(before)) * spike;
  const Value i1 = blend(I1.value(), spike, shifted(scaled(I1.value(), o.R1), o.A1));
  const Value i2 = blend(I2.value(), spike, shifted(scaled(I2.value(), o.R2), o.A2));
  const Value raised =
      blend(threshold, spike, maximum(o.V_th_reset.with(threshold), threshold));

  I1.set(scaled(i1, decay_of(o.dt, inverse(o.k1))));
  I2.set(scaled(i2, decay_of(o.dt, inverse(o.k2))));
  const Coefficient pull = map(o.a, o.b, [](double a, double b) { return a / b; });
  const Value goal = shifted(scaled(v - o.V_rest.with(v), pull), o.V_th_inf);
  V_th.set(relax(raised, goal, decay_of(o.dt, inverse(o.b))));
  Current total = total_current(current, v);
  total.I = total.I + I1.value() + I2.value();
  V.set(with_deltas(integrate({o.R, o.tau, o.V_rest, o.dt}, v, total)));
  return get_spike();
}

GIF::GIF(Shape size, GIFOptions options)
    : Neuron("GIF", size),
      V(size, options.V_init),
      I2(size, options.I2_init),
      options_(std::move(options)) {
  require_positive("GIF", "tau", options_.tau, size);
  require_positive("GIF", "tau_I2", options_.tau_I2, size);
  require_positive("GIF", "V_th_inf", options_.V_th_inf, size);
  require_finite("GIF", "R", options_.R, size);
  require_finite("GIF", "A2", options_.A2, size);
  require_finite("GIF", "V_rest", options_.V_rest, size);
  require_time_step("GIF", options_.dt);
  add("V", V);
  add("I2", I2);
}

Value GIF::get_spike() {
  return options_.spk_fun(scaled_potential(V.value(), options_.V_th_inf, 0));
}

Value GIF::step(const Tangent& current) {
  const GIFOptions& o = options_;
  const Value spike = stop_gradient(get_spike());
  const Value v = V.value() - scaled(spike, o.V_th_inf);
  I2.set(scaled(I2.value() - scaled(spike, o.A2), decay_of(o.dt, o.tau_I2)));
  Current total = total_current(current, v);
  total.I = total.I + I2.value();
  V.set(with_deltas(integrate({o.R, o.tau, o.V_rest, o.dt}, v, total)));
  return standardize(V.value() - o.V_th_inf.with(v), {.use_fast_variance = true});
}

}  // namespace braintrace::nn
