// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/hidden_group.h"

#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

std::vector<Path> HiddenGroup::hidden_paths() const {
  std::vector<Path> out;
  for (const HiddenVar& m : members) out.push_back(m.path);
  return out;
}

std::vector<HiddenState*> HiddenGroup::hidden_states() const {
  std::vector<HiddenState*> out;
  for (const HiddenVar& m : members) out.push_back(m.state);
  return out;
}

std::vector<ValueId> HiddenGroup::hidden_invars() const {
  std::vector<ValueId> out;
  for (const HiddenVar& m : members) out.push_back(m.in);
  return out;
}

std::vector<ValueId> HiddenGroup::hidden_outvars() const {
  std::vector<ValueId> out;
  for (const HiddenVar& m : members) out.push_back(m.out);
  return out;
}

std::int64_t HiddenGroup::num_state() const {
  std::int64_t n = 0;
  for (const HiddenVar& m : members) n += m.num_state;
  return n;
}

std::int64_t HiddenGroup::trace_state_width() const {
  return snap ? snap->num_neighbour() * num_state() : num_state();
}

bool HiddenGroup::contains(const Path& p) const {
  return std::any_of(members.begin(), members.end(),
                     [&](const HiddenVar& m) { return m.path == p; });
}

void HiddenGroup::check_consistent_varshape() const {
  for (const HiddenVar& m : members)
    BT_REQUIRE_KIND(m.varshape == varshape(), ErrorKind::not_supported,
                    fmt::format("hidden group {}: {} has shape {}, but {} has {}", index,
                                to_string(m.path), to_string(m.varshape),
                                to_string(members.front().path), to_string(varshape())));
}

std::vector<Array> HiddenGroup::transition(const std::vector<Array>& hidden_vals,
                                           const std::vector<Array>& const_vals) const {
  std::vector<Array> in = const_vals;
  in.insert(in.end(), hidden_vals.begin(), hidden_vals.end());
  return eval_graph(transition_program, in);
}

Value HiddenGroup::concat_hidden(const std::vector<Value>& values) const {
  BT_REQUIRE(values.size() == members.size(),
             fmt::format("concat_hidden: group {} has {} states, got {} values", index,
                         members.size(), values.size()));
  std::vector<Value> parts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool plain = members[i].state->kind() == StateKind::hidden;
    parts.push_back(plain ? expand_dims(values[i], -1) : values[i]);
  }
  return parts.size() == 1 ? parts[0] : concat(parts, -1);
}

std::vector<Value> HiddenGroup::split_hidden(const Value& value) const {
  BT_REQUIRE(
      value.rank() >= 1 && value.dim(-1) == num_state(),
      fmt::format("split_hidden: the last axis of group {} must have {} states, got {}",
                  index, num_state(), to_string(value.shape())));
  std::vector<Value> out;
  std::int64_t at = 0;
  for (const HiddenVar& m : members) {
    const Value part = slice_axis(value, -1, at, m.num_state);
    out.push_back(m.state->kind() == StateKind::hidden ? squeeze(part, -1) : part);
    at += m.num_state;
  }
  return out;
}

Array HiddenGroup::concat_hidden(const std::vector<Array>& values) const {
  return concat_hidden(std::vector<Value>(values.begin(), values.end())).array();
}

std::vector<Array> HiddenGroup::split_hidden(const Array& value) const {
  std::vector<Array> out;
  for (const Value& v : split_hidden(Value(value))) out.push_back(v.array());
  return out;
}

std::vector<std::pair<std::string, std::string>> HiddenGroup::dict() const {
  return {
      {"index", fmt::format("{}", index)},
      {"hidden_paths", path_list(hidden_paths())},
      {"varshape", to_string(varshape())},
      {"num_state", fmt::format("{}", num_state())},
      {"transition",
       fmt::format("{} nodes, {} constants", transition_program.nodes().size(),
                   transition_constants.size())},
      {"is_diagonal_recurrence", is_diagonal_recurrence ? "true" : "false"},
      {"snap", snap ? fmt::format("K={}", snap->num_neighbour()) : "none"},
  };
}

}  // namespace braintrace
