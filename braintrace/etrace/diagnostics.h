// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every decision of the compiler as a record that can be asked for later; nothing is
// printed.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braintrace/model/path.h"

namespace braintrace {

enum class DiagnosticLevel { info, warning, error };

enum class DiagnosticKind {
  relation_included,
  relation_excluded_no_paramstate,
  relation_excluded_non_temporal,
  relation_excluded_shape_mismatch,
  relation_excluded_weight_to_weight,
  relation_partial_path,
  trainable_invar_not_paramstate,
  cond_if_converted,
  cond_conversion_skipped,
  scan_unrolled,
  scan_unroll_skipped,
  relation_excluded_sliced_weight,
  scan_descent_applied,
  scan_descent_skipped,
  scan_descent_no_relations,
  weight_in_while,
  weight_in_control_flow,
  control_flow_opaque_fwd,
  control_flow_recurrent_mixing,
  primitive_inside_nested_jit,
  primitive_inside_control_flow,
  multi_output_primitive_detected,
  pytree_weight_leaf_ambiguous,
  snap_pattern_conservative,
  snap_pattern_degenerate,
  transition_tail_bounded,
  hidden_group_merged,
  state_mismatch,
  // Beyond the reference: one verdict per parameter, and what history is dropped where.
  parameter_local,
  parameter_refused,
  relation_dense,
  history_cut,
};

std::string_view to_string(DiagnosticLevel l);
std::string_view to_string(DiagnosticKind k);  // "relation_included", ...
std::optional<DiagnosticKind> diagnostic_kind_from_string(std::string_view name);
// All kinds, in declaration order.
const std::vector<DiagnosticKind>& all_diagnostic_kinds();

struct CompilationRecord {
  DiagnosticKind kind = DiagnosticKind::relation_included;
  DiagnosticLevel level = DiagnosticLevel::info;
  std::string message;
  std::string primitive = {};
  std::optional<Path> weight_path = {};
  std::vector<Path> hidden_paths = {};
  std::vector<Path> more_weights = {};  // explain finds the record under these, too
  // Name -> value as Python would print it.
  std::vector<std::pair<std::string, std::string>> context = {};
};

// "CompilationRecord(kind=.., level=.., ...)": only non-empty fields.
std::string to_string(const CompilationRecord& r);

// The list records are appended to while a graph is built.
class Diagnostics {
 public:
  void note(CompilationRecord r) { records_.push_back(std::move(r)); }
  void note_all(const std::vector<CompilationRecord>& r);
  const std::vector<CompilationRecord>& records() const { return records_; }

 private:
  std::vector<CompilationRecord> records_;
};

// Python-like text of lists, for messages and contexts.
std::string path_list(const std::vector<Path>& paths);       // "[('h',), ('c',)]"
std::string python_string(std::string_view s);               // 'text'
std::string python_tuple(const std::vector<std::int64_t>&);  // (0,)

}  // namespace braintrace
