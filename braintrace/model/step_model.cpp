// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/step_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/model/trace_scope.h"

namespace braintrace {
namespace {

Path path_of(const std::vector<NamedState>& named, const State* s) {
  const auto it = std::find_if(named.begin(), named.end(),
                               [&](const NamedState& n) { return n.state == s; });
  return it == named.end() ? Path{} : it->path;
}

void refuse_written_parameters(const std::vector<NamedState>& named,
                               const TraceScope& scope) {
  for (const TracedState& t : scope.states()) {
    const bool refused = t.state->kind() == StateKind::param && t.written;
    BT_REQUIRE_KIND(
        !refused, ErrorKind::not_supported,
        fmt::format("trace_step: parameter {} is written in the step; weights "
                    "that change inside a step are not supported",
                    to_string(path_of(named, t.state))));
  }
}

// The state table; value ids are bound once the program is finished.
StepModel state_table(const std::vector<NamedState>& named, const TraceScope& scope) {
  StepModel step;
  for (const TracedState& t : scope.states()) {
    Path path = path_of(named, t.state);
    if (path.empty()) {
      path = {fmt::format("_unknown_path_{}", step.captured.size())};
      step.captured.push_back(path);
    }
    step.states.push_back({path, t.state, t.state->kind(), {}, {}, t.written});
  }
  auto retrieve = [&](const StepState* s) {
    step.retrieved.push_back(static_cast<std::size_t>(s - step.states.data()));
  };
  for (const NamedState& n : named) {
    if (const StepState* met = step.find(n.path)) {
      retrieve(met);
    } else {
      step.unused.push_back(n.path);
    }
  }
  for (const Path& p : step.captured) retrieve(step.find(p));
  return step;
}

void bind_leaves(StepModel& step) {
  std::size_t in = step.num_args, out = step.num_outputs;
  for (StepState& s : step.states) {
    for (std::size_t i = 0; i < s.state->num_leaves(); ++i) {
      s.in.push_back(step.program.inputs()[in++]);
      s.out.push_back(step.program.outputs()[out++]);
    }
  }
}

}  // namespace

const StepState* StepModel::find(const Path& path) const {
  for (const StepState& s : states)
    if (s.path == path) return &s;
  return nullptr;
}

StepModel trace_step(Module& m, const std::vector<Type>& inputs) {
  const std::vector<NamedState> named = collect_states(m);
  const auto builder = Builder::create();
  std::vector<Value> args;
  for (const Type& t : inputs) args.push_back(builder->input(t));

  TraceScope scope(builder);
  std::vector<Value> outputs = m.update_all(args);
  refuse_written_parameters(named, scope);

  StepModel step = state_table(named, scope);
  step.num_args = args.size();
  step.num_outputs = outputs.size();
  for (const TracedState& t : scope.states())
    outputs.insert(outputs.end(), t.current.begin(), t.current.end());
  step.program = builder->finish(outputs);
  BT_REQUIRE_KIND(builder->captured().empty(), ErrorKind::runtime,
                  "trace_step: the step uses a symbolic value of another trace");
  bind_leaves(step);
  return step;
}

StepModel trace_step(Module& m, const std::vector<Array>& examples) {
  std::vector<Type> types;
  for (const Array& a : examples) types.push_back(type_of(a));
  return trace_step(m, types);
}

std::vector<Array> read_states(const StepModel& step) {
  std::vector<Array> out;
  for (const StepState& s : step.states)
    for (std::size_t i = 0; i < s.in.size(); ++i) out.push_back(s.state->stored(i));
  return out;
}

void write_states(const StepModel& step, const std::vector<Array>& values) {
  std::size_t total = 0, next = 0;
  for (const StepState& s : step.states) total += s.in.size();
  BT_REQUIRE(values.size() == total,
             fmt::format("write_states: the step has {} state leaves, got {} values",
                         total, values.size()));
  for (const StepState& s : step.states)
    for (std::size_t i = 0; i < s.in.size(); ++i) s.state->store(i, values[next++]);
}

std::string describe_states(const StepModel& step) {
  std::string text;
  for (const StepState& s : step.states) {
    for (std::size_t i = 0; i < s.in.size(); ++i) {
      const std::string& key = s.state->spec(i).key;
      text += fmt::format(
          "%{} -> %{}  {:<16} {}{}  {}{}\n", s.in[i].index, s.out[i].index,
          to_string(s.kind), to_string(s.path), key.empty() ? "" : "[" + key + "]",
          to_string(step.program.type(s.in[i])), s.written ? "" : "  (read only)");
    }
  }
  for (const Path& p : step.unused)
    text += fmt::format("not used by the step: {}\n", to_string(p));
  for (const Path& p : step.captured)
    text += fmt::format("not registered in the module: {}\n", to_string(p));
  return text;
}

}  // namespace braintrace
