// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/learner_checkpoint.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace braintrace {
namespace {

using nlohmann::json;

std::set<std::string> weight_leaves(const Module& model) {
  std::set<std::string> out;
  for (const NamedState& s : collect_states(model)) {
    if (s.state->kind() != StateKind::param) continue;
    for (std::size_t k = 0; k < s.state->num_leaves(); ++k) {
      const std::string& key = s.state->spec(k).key;
      out.insert(to_slashes(key.empty() ? s.path : s.path.child(key)));
    }
  }
  return out;
}

void require_all_values(const Learner& learner, const StateDict& values) {
  for (const auto& [path, now] : state_dict(learner.model())) {
    const auto it = values.find(path);
    BT_REQUIRE(it != values.end(), fmt::format("restore: '{}' is missing", path));
    BT_REQUIRE(it->second.shape() == now.shape() && it->second.dtype() == now.dtype(),
               fmt::format("restore: '{}' needs {}, got {}", path,
                           to_string(type_of(now)), to_string(type_of(it->second))));
  }
}

void require_all_traces(const Learner& learner, const StateDict& traces) {
  const std::vector<TraceView> own = learner.etraces();
  BT_REQUIRE(own.size() == traces.size(),
             fmt::format("restore: {} keeps {} traces, got {}", learner.algorithm().name,
                         own.size(), traces.size()));
  for (const TraceView& t : own) {
    const auto it = traces.find(t.slot.name());
    BT_REQUIRE(it != traces.end(),
               fmt::format("restore: the trace '{}' is missing", t.slot.name()));
    BT_REQUIRE(
        it->second.shape() == t.value.shape() && it->second.dtype() == t.value.dtype(),
        fmt::format("restore: the trace '{}' needs {}, got {}", t.slot.name(),
                    to_string(type_of(t.value)), to_string(type_of(it->second))));
  }
}

std::int64_t count_from(const json& config, const char* name) {
  const auto it = config.find(name);
  BT_REQUIRE(it != config.end() && it->is_number_integer() && *it >= 0,
             fmt::format("restore: config '{}' must be a count", name));
  return it->get<std::int64_t>();
}

}  // namespace

Checkpoint checkpoint_of(const Learner& learner, const Optimizer& optimizer,
                         std::int64_t step) {
  Checkpoint c;
  const std::set<std::string> weights = weight_leaves(learner.model());
  for (const auto& [path, value] : state_dict(learner.model()))
    (weights.contains(path) ? c.weights : c.states).emplace(path, value);
  for (const TraceView& t : learner.etraces()) c.traces.emplace(t.slot.name(), t.value);
  c.optimizer = optimizer.state_dict();
  c.step = step;
  c.config = json{{"algorithm", learner.algorithm().name},
                  {"calls", learner.running_index()},
                  {"trace_steps", learner.trace_steps()}}
                 .dump();
  return c;
}

namespace {

// `optimizer` may be null.
void restore_all(Learner& learner, Optimizer* optimizer, const Checkpoint& c) {
  const auto mine = learner.claim("restore");
  const json config = json::parse(c.config, nullptr, false);
  BT_REQUIRE(config.is_object(), "restore: the config is not a JSON object");
  BT_REQUIRE(
      config.value("algorithm", json()) == learner.algorithm().name,
      fmt::format("restore: written by {}, not by {}",
                  config.value("algorithm", json()).dump(), learner.algorithm().name));
  const std::int64_t calls = count_from(config, "calls"),
                     steps = count_from(config, "trace_steps");
  StateDict values = c.weights;
  values.insert(c.states.begin(), c.states.end());
  require_all_values(learner, values);
  require_all_traces(learner, c.traces);
  std::optional<Optimizer> loaded;  // refuses a wrong state before the model changes
  if (optimizer) loaded.emplace(*optimizer).load_state_dict(c.optimizer);
  load_state_dict(learner.model(), values);
  if (optimizer) *optimizer = std::move(*loaded);
  learner.reset_state();
  for (const auto& [name, value] : c.traces) learner.set_etrace(name, value);
  learner.set_counters(calls, steps);
}

}  // namespace

void restore(Learner& learner, Optimizer& optimizer, const Checkpoint& c) {
  restore_all(learner, &optimizer, c);
}

void restore(Learner& learner, const Checkpoint& c) { restore_all(learner, nullptr, c); }

}  // namespace braintrace
