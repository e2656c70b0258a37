// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/diagnostics.h"

#include <array>

#include <fmt/format.h>

namespace braintrace {
namespace {

constexpr std::array<std::string_view, 32> kKindNames = {
    "relation_included",
    "relation_excluded_no_paramstate",
    "relation_excluded_non_temporal",
    "relation_excluded_shape_mismatch",
    "relation_excluded_weight_to_weight",
    "relation_partial_path",
    "trainable_invar_not_paramstate",
    "cond_if_converted",
    "cond_conversion_skipped",
    "scan_unrolled",
    "scan_unroll_skipped",
    "relation_excluded_sliced_weight",
    "scan_descent_applied",
    "scan_descent_skipped",
    "scan_descent_no_relations",
    "weight_in_while",
    "weight_in_control_flow",
    "control_flow_opaque_fwd",
    "control_flow_recurrent_mixing",
    "primitive_inside_nested_jit",
    "primitive_inside_control_flow",
    "multi_output_primitive_detected",
    "pytree_weight_leaf_ambiguous",
    "snap_pattern_conservative",
    "snap_pattern_degenerate",
    "transition_tail_bounded",
    "hidden_group_merged",
    "state_mismatch",
    "parameter_local",
    "parameter_refused",
    "relation_dense",
    "history_cut",
};

}  // namespace

std::string_view to_string(DiagnosticLevel l) {
  switch (l) {
    case DiagnosticLevel::info:
      return "info";
    case DiagnosticLevel::warning:
      return "warning";
    case DiagnosticLevel::error:
      return "error";
  }
  return "info";
}

std::string_view to_string(DiagnosticKind k) {
  return kKindNames[static_cast<std::size_t>(k)];
}

std::optional<DiagnosticKind> diagnostic_kind_from_string(std::string_view name) {
  for (DiagnosticKind k : all_diagnostic_kinds())
    if (to_string(k) == name) return k;
  return std::nullopt;
}

const std::vector<DiagnosticKind>& all_diagnostic_kinds() {
  static const std::vector<DiagnosticKind> kinds = [] {
    std::vector<DiagnosticKind> v;
    for (std::size_t i = 0; i < kKindNames.size(); ++i)
      v.push_back(static_cast<DiagnosticKind>(i));
    return v;
  }();
  return kinds;
}

std::string to_string(const CompilationRecord& r) {
  std::string text = fmt::format("CompilationRecord(kind={}, level={}", to_string(r.kind),
                                 to_string(r.level));
  if (!r.primitive.empty()) text += fmt::format(", primitive='{}'", r.primitive);
  if (r.weight_path) text += fmt::format(", weight_path={}", to_string(*r.weight_path));
  if (!r.hidden_paths.empty())
    text += fmt::format(", hidden_paths={}", path_list(r.hidden_paths));
  if (!r.message.empty()) text += fmt::format(", message={}", python_string(r.message));
  if (!r.context.empty()) {
    std::string items;
    for (const auto& [name, value] : r.context)
      items += fmt::format("{}'{}': {}", items.empty() ? "" : ", ", name, value);
    text += fmt::format(", context={{{}}}", items);
  }
  return text + ")";
}

void Diagnostics::note_all(const std::vector<CompilationRecord>& r) {
  records_.insert(records_.end(), r.begin(), r.end());
}

std::string path_list(const std::vector<Path>& paths) {
  std::string text;
  for (const Path& p : paths) text += (text.empty() ? "" : ", ") + to_string(p);
  return "[" + text + "]";
}

std::string python_string(std::string_view s) {
  const bool single = s.find('\'') != std::string_view::npos;
  const bool twice = s.find('"') != std::string_view::npos;
  if (single && !twice) return fmt::format("\"{}\"", s);
  std::string out = "'";
  for (char c : s) {
    if (c == '\'' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string python_tuple(const std::vector<std::int64_t>& v) {
  return fmt::format("({}{})", fmt::join(v, ", "), v.size() == 1 ? "," : "");
}

}  // namespace braintrace
