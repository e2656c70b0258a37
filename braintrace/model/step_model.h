// SPDX-License-Identifier: Apache-2.0
#pragma once
// One traced step of a model: the one door between model writers and the compiler.
// Program inputs:  [arguments | leaves of every touched state, in order of first touch]
// Program outputs: [model outputs | the same leaves at step exit]
#include <string>
#include <vector>

#include "braintrace/ir/graph.h"
#include "braintrace/model/module.h"

namespace braintrace {

struct StepState {
  Path path;
  State* state = nullptr;
  StateKind kind = StateKind::short_term;
  std::vector<ValueId> in, out;  // per leaf
  bool written = false;          // false: out is in
};

struct StepModel {
  Graph program;
  std::size_t num_args = 0;
  std::size_t num_outputs = 0;
  std::vector<StepState> states;       // first-touch order
  std::vector<std::size_t> retrieved;  // indices of `states` in module-walk order
  std::vector<Path> unused;            // registered, but not touched by the step
  std::vector<Path> captured;  // touched, but not registered: ('_unknown_path_0',)

  const StepState* find(const Path& path) const;
};

// Runs the model's step once on symbolic values of the given types. States must have
// values (init_all_states). The stored values are not changed.
// UserError: a parameter written in the step (not_supported, names its path).
StepModel trace_step(Module& m, const std::vector<Type>& inputs);
StepModel trace_step(Module& m, const std::vector<Array>& examples);

// Stored values of all state leaves, in program-input order; and back.
std::vector<Array> read_states(const StepModel& step);
void write_states(const StepModel& step, const std::vector<Array>& values);

// One line per state: ids, kind, path, type, read or written. For people.
std::string describe_states(const StepModel& step);

}  // namespace braintrace
