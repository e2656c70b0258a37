// SPDX-License-Identifier: Apache-2.0
#include "braintrace/model/trace_scope.h"

#include <fmt/format.h>

#include "braintrace/model/state.h"

namespace braintrace {

TraceScope* TraceScope::current() {
  for (RecordingScope* s = RecordingScope::innermost(); s; s = s->outer())
    if (auto* trace = dynamic_cast<TraceScope*>(s)) return trace;
  return nullptr;
}

TracedState& TraceScope::touch(State& s) {
  for (TracedState& t : states_)
    if (t.state == &s) return t;
  TracedState t{.state = &s};
  for (std::size_t i = 0; i < s.num_leaves(); ++i)
    t.inputs.push_back(builder()->input(type_of(s.stored(i))));
  t.current = t.inputs;
  states_.push_back(std::move(t));
  return states_.back();
}

Value TraceScope::read(State& s, std::size_t leaf) { return touch(s).current.at(leaf); }

void TraceScope::write(State& s, std::size_t leaf, const Value& v) {
  TracedState& t = touch(s);
  const Type want = t.inputs.at(leaf).type();
  BT_REQUIRE_KIND(v.type() == want, ErrorKind::type,
                  fmt::format("state '{}' must stay {} over a step, but is set to {}",
                              s.name(), to_string(want), to_string(v.type())));
  BT_REQUIRE_KIND(
      v.is_concrete() || v.builder() == builder(), ErrorKind::not_supported,
      fmt::format("state '{}' is written inside the body of a scan, while or cond; "
                  "pass it as a carry and set it from the result",
                  s.name()));
  t.current[leaf] = v;
  t.written = true;
}

}  // namespace braintrace
