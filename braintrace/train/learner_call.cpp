// SPDX-License-Identifier: Apache-2.0
// One run of a learner's program: what it is given, and that nothing moves unless it
// succeeds.
#include <cmath>

#include <fmt/format.h>

#include "braintrace/train/learner_impl.h"

namespace braintrace {

namespace {

// A number as an array; the old array is used again when nobody else holds it.
void set_numbers(Array& a, const Type& t, std::span<const double> values) {
  if (!a.is_unique() || a.dtype() != t.dtype || a.shape() != t.shape)
    a = zeros(t.shape, t.dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (t.dtype == DType::f64)
      a.mutable_data<double>()[i] = values[i];
    else
      a.mutable_data<float>()[i] = static_cast<float>(values[i]);
  }
}

}  // namespace

void Learner::Impl::bind(Executable& e, std::span<const Array> args,
                         std::span<const double> loss_weights, std::string_view caller,
                         const Extras& extras) {
  const StepProgram& p = e.program();
  BT_REQUIRE(args.size() == p.num_args, fmt::format("{}: {} arguments expected, got {}",
                                                    caller, p.num_args, args.size()));
  const auto ids = p.graph.inputs();
  e.inputs.resize(ids.size());
  e.own.resize(ids.size());
  std::size_t at = 0;
  for (const Array& a : args) e.inputs[at++] = &a;
  for (const ProgramLeaf& leaf : p.leaves)
    e.inputs[at++] = &leaf.state->stored(leaf.leaf);
  for (std::size_t i = 0; i < p.num_traces; ++i) {
    if (!traces[i].is_contiguous()) make_room(i);
    e.inputs[at++] = &traces[i];
  }
  const auto number = [&](std::span<const double> values) {
    set_numbers(e.own[at], p.graph.type(ids[at]), values);
    e.inputs[at] = &e.own[at];
    ++at;
  };
  for (const std::int64_t n : {calls, trace_steps}) {
    const double value = static_cast<double>(n);
    number({&value, 1});
  }
  for (const RuleInput& r : p.inputs) {
    const auto it = rule_inputs.find(r.name);
    BT_REQUIRE_KIND(
        it != rule_inputs.end(), ErrorKind::runtime,
        fmt::format("{}: the rule needs '{}' at every step and none was given", caller,
                    r.name));
    e.inputs[at++] = &it->second;
  }
  if (loss_weights.empty()) return;
  BT_INVARIANT(num_elements(p.graph.type(ids[at]).shape) ==
               static_cast<std::int64_t>(loss_weights.size()));
  number(loss_weights);
  BT_INVARIANT(extras.signals.size() == p.num_signals);
  for (const Array& a : extras.signals) e.inputs[at++] = &a;
  if (!p.num_moments) return;
  BT_INVARIANT(extras.moments.size() == *p.num_moments);
  for (const Array* a : extras.moments) e.inputs[at++] = a;
  number({&extras.rate, 1});
  number({&extras.count, 1});
}

void Learner::Impl::call(Executable& e, std::span<const Array> args,
                         std::span<const double> loss_weights, std::string_view caller,
                         const Extras& extras) {
  BT_REQUIRE_KIND(!broken, ErrorKind::runtime,
                  fmt::format("{}: an earlier call failed half way and the traces are "
                              "lost; call reset_state() first",
                              caller));
  last = &e;
  bind(e, args, loss_weights, caller, extras);
  e.check(caller);
  const bool in_place =
      e.program().num_traces > 0 && e.moves_in_place() && !options.learning.check_finite;
  // A second holder keeps the program from moving traces that may have to stay.
  std::vector<Array> held;
  if (options.learning.check_finite) held = traces;
  broken = in_place;
  lend_room(e);
  e.run();
  broken = false;
  if (options.learning.check_finite) require_finite(e, caller);
  commit(e, extras);
}

void Learner::Impl::require_finite(Executable& e, std::string_view caller) const {
  for (const auto& [leaf, g] : e.gradients())
    for (double v : g.to_doubles())
      BT_REQUIRE_KIND(std::isfinite(v), ErrorKind::runtime,
                      fmt::format("{}: the gradient of {} holds {}", caller, leaf, v));
}

}  // namespace braintrace
