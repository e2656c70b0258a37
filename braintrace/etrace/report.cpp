// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/report.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace braintrace {
namespace {

using Kind = DiagnosticKind;

bool is_exclusion(Kind k) {
  return k == Kind::relation_excluded_no_paramstate ||
         k == Kind::relation_excluded_non_temporal ||
         k == Kind::relation_excluded_shape_mismatch ||
         k == Kind::relation_excluded_weight_to_weight;
}

std::string exclusion_of(const ETraceGraph& g, const Path& p) {
  for (const CompilationRecord& r : g.diagnostics)
    if (r.weight_path == p && is_exclusion(r.kind)) return std::string(to_string(r.kind));
  return "";
}

std::string group_phrase(const std::vector<std::int64_t>& groups) {
  if (groups.size() == 1) return fmt::format("hidden group {}", groups[0]);
  return fmt::format("hidden groups [{}]", fmt::join(groups, ", "));
}

}  // namespace

CompilationReport::CompilationReport(const ETraceGraph& g)
    : diagnostics(g.diagnostics), verdicts(g.verdicts) {
  for (const HiddenGroup& group : g.hidden_groups)
    hidden_groups.push_back({group.index, group.hidden_paths()});
  std::set<Path> related;
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations) {
    relations.push_back({r.path(), r.group_indices});
    for (const Trainable& t : r.trainables) {
      etrace_weights.push_back({t.path, r.group_indices});
      for (const WeightVar& w : t.prologue.parameters) related.insert(w.path);
    }
  }
  for (const Path& p : g.module_info.param_paths())
    if (!related.contains(p)) excluded_weights.push_back({p, exclusion_of(g, p)});
  const StepModel& step = g.module_info.step;
  for (std::size_t i : step.retrieved)
    if (step.states[i].kind == StateKind::short_term &&
        !step.states[i].state->outlives_sequences())
      dynamic_states.push_back(step.states[i].path);
  auto with_level = [&](DiagnosticLevel l) {
    return static_cast<std::size_t>(
        std::count_if(diagnostics.begin(), diagnostics.end(),
                      [l](const CompilationRecord& r) { return r.level == l; }));
  };
  counts = {{"hidden_groups", hidden_groups.size()},
            {"etrace_weights", etrace_weights.size()},
            {"etrace_parameters", related.size()},
            {"excluded_weights", excluded_weights.size()},
            {"warnings", with_level(DiagnosticLevel::warning)},
            {"errors", with_level(DiagnosticLevel::error)}};
}

std::string CompilationReport::one_line() const {
  return fmt::format(
      "CompilationReport(hidden_groups={}, etrace_weights={}, excluded_weights={}, "
      "warnings={}, errors={})",
      counts.at("hidden_groups"), counts.at("etrace_weights"),
      counts.at("excluded_weights"), counts.at("warnings"), counts.at("errors"));
}

std::string CompilationReport::to_str(int level) const {
  if (level <= 0) return one_line();
  std::string text = std::string(120, '=') + "\nThe hidden groups are:\n\n";
  for (const Group& g : hidden_groups)
    text += fmt::format("   Group {}: {}\n", g.index, path_list(g.paths));
  text += "\n\n";
  if (!dynamic_states.empty()) {
    text += "The dynamic (non-hidden) states are:\n\n";
    for (std::size_t i = 0; i < dynamic_states.size(); ++i)
      text += fmt::format("   Dynamic state {}: {}\n", i, to_string(dynamic_states[i]));
    text += "\n\n";
  }
  if (!relations.empty()) {
    text += "The weight parameters which are associated with the hidden states are:\n\n";
    for (std::size_t i = 0; i < relations.size(); ++i)
      text +=
          fmt::format("   Weight {}: {}  is associated with {}\n", i,
                      to_string(relations[i].path), group_phrase(relations[i].groups));
    text += "\n\n";
  }
  if (!excluded_weights.empty()) {
    text += "The non-etrace weight parameters are:\n\n";
    for (std::size_t i = 0; i < excluded_weights.size(); ++i) {
      const ExcludedWeight& w = excluded_weights[i];
      text +=
          fmt::format("   Weight {}: {}{}\n", i, to_string(w.path),
                      w.reason.empty() ? "" : fmt::format("  (excluded: {})", w.reason));
    }
    text += "\n\n";
  }
  if (level >= 2 && counts.at("warnings") + counts.at("errors") > 0) {
    text += "Compiler diagnostics (warnings / errors):\n\n";
    for (const CompilationRecord& r : diagnostics)
      if (r.level != DiagnosticLevel::info)
        text += fmt::format("   [{}] {}: {}\n", to_string(r.level), to_string(r.kind),
                            r.message);
    text += "\n\n";
  }
  return text;
}

std::string CompilationReport::verdict_table() const {
  std::size_t width = 0;
  for (const ParameterVerdict& v : verdicts)
    width = std::max(width, to_string(v.path).size());
  std::string text = "Every parameter has one verdict:\n\n";
  for (const ParameterVerdict& v : verdicts)
    text += fmt::format("   {:<{}}  {:<7}  {}\n", to_string(v.path), width,
                        to_string(v.verdict), v.reason);
  bool first = true;
  for (const CompilationRecord& r : diagnostics) {
    if (r.kind != Kind::history_cut) continue;
    if (first) text += "\nHistory is dropped here:\n\n";
    first = false;
    text += fmt::format("   {}\n", r.message);
  }
  return text + "\n";
}

}  // namespace braintrace
