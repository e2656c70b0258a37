// SPDX-License-Identifier: Apache-2.0
// CubaLIF and CobaLIF.
#include "braintrace/nn/synaptic_lif.h"

#include <cmath>

#include <fmt/core.h>

#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

Value receive(const Value& g, const Coefficient& left, const Tangent& delta) {
  const Value kept = scaled(g, left);
  return delta ? kept + *delta : kept;
}

}  // namespace

CubaLIF::CubaLIF(Shape size, CubaLIFOptions options)
    : LIF("CubaLIF", size, std::move(options.membrane)),
      g(size, options.g_init),
      tau_syn_(options.tau_syn) {
  require_positive("CubaLIF", "tau_syn", tau_syn_, size);
  add("g", g);
}

Value CubaLIF::step(const Tangent& current) {
  const Value v = reset(V.value(), get_spike());
  g.set(receive(g.value(), decay_of(options().dt, tau_syn_), take_deltas()));
  Current total = total_current(current, v);
  total.I = total.I + g.value();
  V.set(integrate_membrane(v, total));
  return get_spike();
}

CobaLIF::CobaLIF(Shape size, CobaLIFOptions options)
    : LIF("CobaLIF", size, std::move(options.membrane)),
      g(size, options.g_init),
      tau_syn_(options.tau_syn),
      E_(options.E),
      scale_(options.scale) {
  require_positive("CobaLIF", "tau_syn", tau_syn_, size);
  require_finite("CobaLIF", "E", E_, size);
  BT_REQUIRE(std::isfinite(scale_),
             fmt::format("CobaLIF: scale must be finite, got {}", scale_));
  add("g", g);
}

Value CobaLIF::step(const Tangent& current) {
  const Value v = reset(V.value(), get_spike());
  g.set(receive(g.value(), decay_of(options().dt, tau_syn_), take_deltas()));
  Current total = total_current(current, v);
  const Value conductance = scaled(g.value(), scale_);
  total.I = total.I + conductance * sub(E_.with(v), v);
  total.slope = total.slope ? *total.slope - conductance : -conductance;
  V.set(integrate_membrane(v, total));
  return get_spike();
}

}  // namespace braintrace::nn
