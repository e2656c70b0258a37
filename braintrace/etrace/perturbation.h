// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step with a perturbation added to every hidden state at exit: h_out := h_out + p.
// Readers inside the step see the perturbed value, so dL/dh = dL/dp at p = 0.
#include "braintrace/etrace/hidden_group.h"

namespace braintrace {

struct HiddenPerturbation {
  Graph program;  // inputs: those of the step, then one p per hidden state
  std::vector<Path> perturb_hidden_paths;  // canonical order
  std::vector<HiddenState*> perturb_hidden_states;
  std::vector<Type> perturb_types;

  const Graph& perturb_jaxpr() const { return program; }
  std::vector<ValueId> perturb_vars() const;  // the inputs p of the program

  std::vector<Array> init_perturb_data() const;  // zeros
  std::vector<Array> eval(const std::vector<Array>& inputs,
                          const std::vector<Array>& perturb_data) const;
  std::vector<Array> eval_jaxpr(const std::vector<Array>& inputs,
                                const std::vector<Array>& perturb_data) const {
    return eval(inputs, perturb_data);
  }
  // Per group, one array (*varshape, num_state).
  std::vector<Array> perturb_data_to_hidden_group_data(
      const std::vector<Array>& perturb_data,
      const std::vector<HiddenGroup>& groups) const;
};

HiddenPerturbation add_hidden_perturbation_from_minfo(const ModuleInfo& info);
HiddenPerturbation add_hidden_perturbation_in_module(Module& model,
                                                     const std::vector<Array>& args,
                                                     const CompileOptions& options = {});

}  // namespace braintrace
