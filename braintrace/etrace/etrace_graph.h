// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compiled graph of a model: which weights reach which hidden states, through which
// ops.
#include "braintrace/etrace/perturbation.h"
#include "braintrace/etrace/verdict.h"

namespace braintrace {

struct ExplainFilter {
  std::optional<Path> weight_path = {};
  std::optional<Path> hidden_path = {};
  std::optional<DiagnosticKind> kind = {};
};

struct ETraceGraph {
  ModuleInfo module_info;  // program outputs extended by everything a rule needs
  std::vector<HiddenGroup> hidden_groups;
  std::map<Path, std::int64_t> hid_path_to_group;  // index into hidden_groups
  std::vector<HiddenParamOpRelation> hidden_param_op_relations;
  std::optional<HiddenPerturbation> hidden_perturb;
  std::vector<CompilationRecord> diagnostics;
  std::vector<ParameterVerdict> verdicts;  // one per parameter, retrieved order
  CompileOptions options;

  const HiddenGroup& group_of(const Path& hidden_path) const;  // UserError when unknown
  // Records that match every given filter, in order of emission.
  std::vector<CompilationRecord> explain(const ExplainFilter& filter = {}) const;
  // One step of the perturbed program. UserError when compiled without perturbation.
  ModuleInfo::CallResult call_hidden_perturb(
      const std::vector<Array>& args, const std::vector<Array>& perturb_data,
      const std::optional<std::vector<Array>>& old_state_vals = {}) const;
  // Field name -> short text, in the reference's field order.
  std::vector<std::pair<std::string, std::string>> dict() const;
};

// Needs: init_all_states(model). UserError names what cannot be compiled.
ETraceGraph compile_etrace_graph(Module& model, const std::vector<Array>& args,
                                 const CompileOptions& options = {});

}  // namespace braintrace
