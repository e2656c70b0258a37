// SPDX-License-Identifier: Apache-2.0
#pragma once
// The trace that states belong to while it is the innermost one of the thread.
#include <cstddef>
#include <memory>
#include <vector>

#include "braintrace/ir/builder.h"

namespace braintrace {

class State;

// One state met during the trace, in order of first touch.
struct TracedState {
  State* state = nullptr;
  std::vector<Value> inputs;   // per leaf: value at step entry
  std::vector<Value> current;  // per leaf: value now
  bool written = false;
};

class TraceScope : public RecordingScope {
 public:
  using RecordingScope::RecordingScope;

  static TraceScope* current();  // the innermost of the thread; null outside any trace

  Value read(State& s, std::size_t leaf);
  // UserError when the type changes or the value belongs to a loop body.
  void write(State& s, std::size_t leaf, const Value& v);

  const std::vector<TracedState>& states() const { return states_; }

 private:
  TracedState& touch(State& s);

  std::vector<TracedState> states_;
};

}  // namespace braintrace
