// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/etrace_graph.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/control_flow.h"
#include "braintrace/etrace/scan_descent.h"
#include "braintrace/etrace/verify_locality.h"

namespace braintrace {
namespace {

void validate_sparse(const CompileOptions& o) {
  if (!o.sparse_n) return;
  BT_REQUIRE(
      *o.sparse_n >= 1,
      fmt::format("compile_etrace_graph: sparse_n must be >= 1, got {}", *o.sparse_n));
  BT_REQUIRE_KIND(o.include_recurrent_mixing, ErrorKind::not_supported,
                  "compile_etrace_graph: sparse_n needs include_recurrent_mixing");
}

// What remains behind the cuts is position-local (I6). Cheap beside the analyses that
// made it, so every compile checks it.
void verify_cut_programs(const ETraceGraph& g) {
  if (g.options.mixing != Mixing::cut || g.options.include_recurrent_mixing) return;
  for (const HiddenGroup& group : g.hidden_groups) verify_locality(group);
  for (const HiddenParamOpRelation& r : g.hidden_param_op_relations) verify_locality(r);
}

// Everything a learning rule reads from a step, each value once.
std::vector<ValueId> hoisted(const ModuleInfo& info,
                             const std::vector<HiddenGroup>& groups,
                             const std::vector<HiddenParamOpRelation>& relations) {
  std::vector<ValueId> out;
  std::set<ValueId> seen;
  auto add = [&](ValueId v) {
    if (seen.insert(v).second) out.push_back(v);
  };
  for (const StepState& s : info.step.states)
    for (ValueId v : s.out) add(v);
  for (const HiddenParamOpRelation& r : relations)
    if (r.x && !r.control_flow_context) add(*r.x);
  for (const HiddenParamOpRelation& r : relations) {
    if (r.control_flow_context) continue;
    for (const std::vector<ValueId>& constants : r.tail_constants) {
      for (ValueId v : constants) add(v);
      add(r.y);
    }
  }
  for (const HiddenGroup& g : groups) {
    if (g.descent) continue;
    for (ValueId v : g.hidden_invars()) add(v);
    for (ValueId v : g.transition_constants) add(v);
  }
  for (ValueId v : stacked_values(groups)) add(v);
  return out;
}

}  // namespace

const HiddenGroup& ETraceGraph::group_of(const Path& p) const {
  const auto it = hid_path_to_group.find(p);
  BT_REQUIRE(it != hid_path_to_group.end(),
             fmt::format("ETraceGraph: no hidden state {}", to_string(p)));
  return hidden_groups[static_cast<std::size_t>(it->second)];
}

std::vector<CompilationRecord> ETraceGraph::explain(const ExplainFilter& f) const {
  const auto names = [](const std::vector<Path>& paths, const Path& p) {
    return std::find(paths.begin(), paths.end(), p) != paths.end();
  };
  std::vector<CompilationRecord> out;
  for (const CompilationRecord& r : diagnostics) {
    if (f.weight_path && r.weight_path != f.weight_path &&
        !names(r.more_weights, *f.weight_path))
      continue;
    if (f.kind && r.kind != *f.kind) continue;
    const bool about = !f.hidden_path || names(r.hidden_paths, *f.hidden_path);
    if (about) out.push_back(r);
  }
  return out;
}

ModuleInfo::CallResult ETraceGraph::call_hidden_perturb(
    const std::vector<Array>& args, const std::vector<Array>& perturb_data,
    const std::optional<std::vector<Array>>& old_state_vals) const {
  BT_REQUIRE(
      hidden_perturb.has_value(),
      "call_hidden_perturb: the graph was compiled with include_hidden_perturb = false");
  std::vector<Array> in = args;
  const std::vector<Array> states =
      old_state_vals ? *old_state_vals : read_states(module_info.step);
  in.insert(in.end(), states.begin(), states.end());
  return module_info.sort_outputs(in, hidden_perturb->eval(in, perturb_data));
}

std::vector<std::pair<std::string, std::string>> ETraceGraph::dict() const {
  return {
      {"module_info", fmt::format("{} nodes", module_info.program().nodes().size())},
      {"hidden_groups", fmt::format("{}", hidden_groups.size())},
      {"hid_path_to_group", fmt::format("{}", hid_path_to_group.size())},
      {"hidden_param_op_relations", fmt::format("{}", hidden_param_op_relations.size())},
      {"hidden_perturb", hidden_perturb ? "yes" : "none"},
      {"diagnostics", fmt::format("{}", diagnostics.size())},
  };
}

ETraceGraph compile_etrace_graph(Module& model, const std::vector<Array>& args,
                                 const CompileOptions& options) {
  validate_sparse(options);
  Diagnostics d;
  ETraceGraph g{.options = options};
  ModuleInfo info = extract_module_info(model, args, options, d);
  const ScanDescent descent = apply_scan_descent(info, options, d);
  g.hidden_groups = find_hidden_groups_from_minfo(info, options, d);
  append_groups(g.hidden_groups, descent);
  for (const HiddenGroup& group : g.hidden_groups)
    for (const Path& p : group.hidden_paths()) g.hid_path_to_group[p] = group.index;
  g.hidden_param_op_relations =
      find_hidden_param_op_relations_from_minfo(info, g.hidden_groups, options, d);
  append_relations(g.hidden_param_op_relations, g.hidden_groups, descent);
  verify_cut_programs(g);
  g.verdicts =
      parameter_verdicts(info, g.hidden_groups, g.hidden_param_op_relations, options, d);
  g.module_info =
      info.add_jaxpr_outs(hoisted(info, g.hidden_groups, g.hidden_param_op_relations));
  if (options.include_hidden_perturb) {
    g.hidden_perturb = add_hidden_perturbation_from_minfo(g.module_info);
    note_opaque_perturbation(info, options, d);
  }
  g.diagnostics = d.records();
  return g;
}

}  // namespace braintrace
