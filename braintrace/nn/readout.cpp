// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/readout.h"

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

Shape weight_shape(const char* who, std::int64_t in, std::int64_t out) {
  return {internal::positive(who, "in_size", in),
          internal::positive(who, "out_size", out)};
}

Coefficient checked_decay(const char* who, const Coefficient& tau, double dt,
                          std::int64_t out) {
  require_time_step(who, dt);
  require_positive(who, "tau", tau, {out});
  return decay_of(dt, tau);
}

}  // namespace

LeakyRateReadout::LeakyRateReadout(std::int64_t in_size, std::int64_t out_size,
                                   LeakyRateReadoutOptions options)
    : W(weight_shape("LeakyRateReadout", in_size, out_size), options.w_init),
      r({out_size}, options.r_init),
      in_size_(in_size),
      decay_(checked_decay("LeakyRateReadout", options.tau, options.dt, out_size)) {
  add("W", W);
  add("r", r);
}

Value LeakyRateReadout::update(Value x) {
  internal::require_features("LeakyRateReadout", x, in_size_);
  const Value left = scaled(r.value(), decay_);
  const Value next = left + matmul(x, W.value());
  r.set(next);
  return next;
}

LeakySpikeReadout::LeakySpikeReadout(std::int64_t in_size, std::int64_t out_size,
                                     LeakySpikeReadoutOptions options)
    : W(weight_shape("LeakySpikeReadout", in_size, out_size), options.w_init),
      V({out_size}, options.V_init),
      in_size_(in_size),
      options_(std::move(options)),
      reset_(reset_from("LeakySpikeReadout", options_.spk_reset)),
      decay_(checked_decay("LeakySpikeReadout", options_.tau, options_.dt, out_size)) {
  require_positive("LeakySpikeReadout", "V_th", options_.V_th, {out_size});
  add("W", W);
  add("V", V);
}

Value LeakySpikeReadout::spike(const Value& v) const {
  return options_.spk_fun(scaled_potential(v, options_.V_th, 0));
}

Value LeakySpikeReadout::update(Value x) {
  internal::require_features("LeakySpikeReadout", x, in_size_);
  const Value old = V.value();
  const Value kept = reset_potential(reset_, old, spike(old), options_.V_th, 0);
  const Coefficient gain = map(decay_, [](double e) { return 1 - e; });
  const Value next = scaled(kept, decay_) + scaled(matmul(x, W.value()), gain);
  V.set(next);
  return spike(next);
}

}  // namespace braintrace::nn
