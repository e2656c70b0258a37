// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups hidden states that feed each other within one step, and the map from their
// values at step entry to their values at step exit.
#include <optional>
#include <vector>

#include "braintrace/etrace/module_info.h"
#include "braintrace/etrace/position_flow.h"
#include "braintrace/etrace/snap_pattern.h"

namespace braintrace {

// A group that lives in the body of a long scan: one body run per sub-step.
struct ScanDescentInfo;

struct HiddenGroup {
  std::int64_t index = 0;
  std::vector<HiddenVar> members;  // canonical order; values of the body under `descent`
  // (constants..., one value per member at entry) -> (one value per member at exit)
  Graph transition_program;
  std::vector<ValueId> transition_constants;  // values of the step's program
  bool is_diagonal_recurrence = true;
  bool has_recurrence = true;  // false: the step exit does not depend on the entry
  std::vector<Use> cuts;       // where past credit stops, in the step's program
  std::optional<SnapPattern> snap = {};
  std::shared_ptr<const ScanDescentInfo> descent = {};

  const Graph& transition_jaxpr() const { return transition_program; }
  const std::vector<ValueId>& transition_jaxpr_constvars() const {
    return transition_constants;
  }
  std::vector<Path> hidden_paths() const;
  std::vector<HiddenState*> hidden_states() const;
  std::vector<ValueId> hidden_invars() const;
  std::vector<ValueId> hidden_outvars() const;
  const Shape& varshape() const { return members.front().varshape; }
  std::int64_t num_state() const;
  std::int64_t trace_state_width() const;  // num_state, times K with a SnAp pattern
  bool contains(const Path& p) const;

  // UserError not_supported when members differ in shape.
  void check_consistent_varshape() const;
  // The members at step exit, given those at entry and the constants.
  std::vector<Array> transition(const std::vector<Array>& hidden_vals,
                                const std::vector<Array>& const_vals) const;
  // One array (*varshape, num_state); a plain member gets a trailing axis of 1.
  Array concat_hidden(const std::vector<Array>& values) const;
  std::vector<Array> split_hidden(const Array& value) const;
  Value concat_hidden(const std::vector<Value>& values) const;
  std::vector<Value> split_hidden(const Value& value) const;

  // Flat (S, S): can exit a depend on entry b at all? All true where that is not known.
  std::vector<bool> jacobian_pattern() const;
  // (constants..., members at entry) -> (*varshape, S, S): d exit a / d entry b.
  // Exact where the transition is position-local; otherwise column sums (reference).
  Graph diagonal_jacobian_program() const;
  // ... -> (*varshape, S, *varshape, S)
  Graph full_jacobian_program() const;
  // ... -> (pairs, S, S): blocks [to, :, from, :] of the full Jacobian, by as many
  // products as there are column colours; samples that do not mix share them.
  struct PositionPair {
    std::int64_t to, from;  // flat
  };
  Graph block_jacobian_program(const std::vector<PositionPair>& pairs) const;
  // As diagonal, but of the full Jacobian: blocks [p, :, p, :].
  Graph coupled_jacobian_program() const;
  Array diagonal_jacobian(const std::vector<Array>& hidden_vals,
                          const std::vector<Array>& const_vals) const;
  Array full_jacobian(const std::vector<Array>& hidden_vals,
                      const std::vector<Array>& const_vals) const;
  std::vector<std::pair<std::string, std::string>> dict() const;
};

// Groups of the flat program: real ones by their first member, then states whose
// recurrence is wholly cut, each alone. UserError: two raw states in one equation under
// `refuse`.
std::vector<HiddenGroup> find_hidden_groups_from_minfo(const ModuleInfo& info,
                                                       const CompileOptions& options,
                                                       Diagnostics& diagnostics);
std::vector<HiddenGroup> find_hidden_groups_from_module(
    Module& model, const std::vector<Array>& args, const CompileOptions& options = {});

}  // namespace braintrace
