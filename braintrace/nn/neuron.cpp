// SPDX-License-Identifier: Apache-2.0
// Input bookkeeping, resets and the leaky membrane.
#include "braintrace/nn/neuron.h"

#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "braintrace/ir/builder.h"
#include "braintrace/nn/exp_euler.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

Tangent PendingInputs::take(Tangent first) {
  Tangent total = std::move(first);
  for (const Value& v : values_) {
    if (!v.is_concrete() && !v.builder()->is_open()) continue;
    total = total ? *total + v : v;
  }
  values_.clear();
  return total;
}

Neuron::Neuron(std::string_view kind, Shape size) : kind_(kind), size_(std::move(size)) {
  require_size(kind, size_);
}

Value Neuron::update(Value current) {
  for (const Source& s : sources_)
    if (s.before) s.before();
  return step(std::move(current));
}

Value Neuron::update() {
  for (const Source& s : sources_)
    if (s.before) s.before();
  return step({});
}

void Neuron::add_source(const std::string& name, CurrentSource source, Module* module,
                        std::function<void()> before) {
  for (const Source& s : sources_)
    BT_REQUIRE(s.name != name,
               fmt::format("{}: a current source called '{}' exists already; share its "
                           "synapse object, or give this one a label",
                           kind_, name));
  if (module && !has_container_) {
    add("_before_updates", before_);
    has_container_ = true;
  }
  if (module) before_.add(name, *module);
  sources_.push_back({name, std::move(source), std::move(before)});
}

Current Neuron::total_current(const Tangent& current, const Value& V) {
  Tangent total = currents_.take(current), slope;
  const auto collect = [&](const CurrentSource& source) {
    const Current c = source(V);
    total = total ? *total + c.I : c.I;
    if (c.slope) slope = slope ? *slope + *c.slope : *c.slope;
  };
  for (const Source& s : sources_) collect(s.current);
  for (const CurrentSource& source : std::exchange(once_, {})) collect(source);
  return {total ? *total : zeros_like(V), slope};
}

Value Neuron::with_deltas(const Value& V) {
  const Tangent delta = deltas_.take();
  return delta ? V + *delta : V;
}

Reset reset_from(std::string_view who, std::string_view spk_reset) {
  if (spk_reset == "soft") return Reset::soft;
  if (spk_reset == "hard") return Reset::hard;
  throw UserError(
      fmt::format("{}: spk_reset must be 'soft' or 'hard', got '{}'", who, spk_reset));
}

Value reset_potential(Reset reset, const Value& V, const Value& spike,
                      const Coefficient& V_th, const Coefficient& V_reset) {
  const Coefficient up = map(V_reset, [](double v) { return -v; });
  if (reset == Reset::hard) return V - shifted(stop_gradient(V), up) * spike;
  const Coefficient drop = map(V_th, V_reset, [](double t, double r) { return t - r; });
  return V - scaled(spike, drop);
}

Value scaled_potential(const Value& V, const Coefficient& V_th,
                       const Coefficient& V_reset) {
  const Coefficient width = map(V_th, V_reset, [](double t, double r) { return t - r; });
  const Value above = V - V_th.with(V);
  return width.is(1) ? above : div(above, width.with(V));
}

Value integrate(const LeakyMembrane& m, const Value& V, const Current& current) {
  const Value target = shifted(scaled(current.I, m.R), m.V_rest);
  if (!current.slope) return relax(V, target, decay_of(m.dt, m.tau));
  const Value f = div(target - V, m.tau.with(V));
  const Value slope = div(scaled(*current.slope, m.R) - 1, m.tau.with(V));
  return exp_euler(V, {f, slope}, m.dt);
}

void require_size(std::string_view who, const Shape& size) {
  check_shape(who, size);
  for (const std::int64_t n : size)
    BT_REQUIRE(n > 0, fmt::format("{}: every size must be positive, got {}", who,
                                  to_string(size)));
}

void require_time_step(std::string_view who, double dt) {
  BT_REQUIRE(std::isfinite(dt) && dt > 0,
             fmt::format("{}: dt must be positive and finite, got {}", who, dt));
}

}  // namespace braintrace::nn
