// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/learning_options.h"

#include <functional>
#include <map>

#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace {
namespace {

// One option: its values in enum order and where it is stored.
struct Choice {
  std::vector<std::string> values;
  std::function<void(LearningOptions&, int)> assign;
};

template <class E>
Choice choice(E LearningOptions::*field, std::vector<std::string> values) {
  return {std::move(values),
          [field](LearningOptions& o, int i) { o.*field = static_cast<E>(i); }};
}

const std::map<std::string, Choice, std::less<>>& choices() {
  using O = LearningOptions;
  static const std::map<std::string, Choice, std::less<>> table = {
      {"plain_params", choice(&O::plain_params, {"newest_step", "zero"})},
      {"newest", choice(&O::newest, {"exact", "trace"})},
      {"signal", choice(&O::signal, {"direct", "total"})},
      {"history", choice(&O::history, {"direct", "deep"})},
      {"prologue", choice(&O::prologue, {"pull_back", "drop"})},
      {"bias_correction", choice(&O::bias_correction, {"trace_steps", "calls"})},
      {"kappa_advance", choice(&O::kappa_advance, {"every_step", "on_gradient"})},
      {"old_states", choice(&O::old_states, {"credit", "drop"})},
      {"uoro_theta", choice(&O::uoro_theta, {"per_sample", "shared"})},
  };
  return table;
}

}  // namespace

LearningOptions compat(LearningOptions base) {
  base.plain_params = PlainParams::zero;
  base.newest = Newest::trace;
  base.signal = SignalAdjoint::total;
  base.history = History::direct;
  base.prologue = PrologueRule::drop;
  base.bias_correction = BiasCorrection::calls;
  base.kappa_advance = KappaAdvance::on_gradient;
  base.old_states = OldStates::drop;
  base.uoro_theta = UoroTheta::shared;
  return base;
}

bool set_option(LearningOptions& options, std::string_view name, std::string_view value) {
  const auto it = choices().find(name);
  if (it == choices().end()) return false;
  const std::vector<std::string>& values = it->second.values;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] == value) {
      it->second.assign(options, static_cast<int>(i));
      return true;
    }
  throw UserError(fmt::format("set_option: {} must be one of {}, got '{}'", name,
                              fmt::join(values, ", "), value));
}

std::vector<std::string> learning_option_names() {
  std::vector<std::string> names;
  for (const auto& [name, c] : choices()) names.push_back(name);
  return names;
}

}  // namespace braintrace
