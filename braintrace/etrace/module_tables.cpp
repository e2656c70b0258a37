// SPDX-License-Identifier: Apache-2.0
// The tables of a traced step under the reference's names, made from the rows that hold
// the data.
#include "braintrace/etrace/module_info.h"

namespace braintrace {

std::vector<NamedState> ModuleInfo::retrieved_model_states() const {
  std::vector<NamedState> out;
  for (std::size_t i : step.retrieved)
    out.push_back({step.states[i].path, step.states[i].state});
  return out;
}

std::vector<State*> ModuleInfo::compiled_model_states() const {
  std::vector<State*> out;
  for (const StepState& s : step.states) out.push_back(s.state);
  return out;
}

std::map<const State*, Path> ModuleInfo::state_id_to_path() const {
  std::map<const State*, Path> out;
  for (const StepState& s : step.states) out.emplace(s.state, s.path);
  return out;
}

std::vector<std::vector<ValueId>> ModuleInfo::state_tree_invars() const {
  std::vector<std::vector<ValueId>> out;
  for (const StepState& s : step.states) out.push_back(s.in);
  return out;
}

std::vector<std::vector<ValueId>> ModuleInfo::state_tree_outvars() const {
  std::vector<std::vector<ValueId>> out;
  for (const StepState& s : step.states) out.push_back(s.out);
  return out;
}

std::map<Path, ValueId> ModuleInfo::hidden_path_to_invar() const {
  std::map<Path, ValueId> out;
  for (const HiddenVar& h : hidden) out.emplace(h.path, h.in);
  return out;
}

std::map<Path, ValueId> ModuleInfo::hidden_path_to_outvar() const {
  std::map<Path, ValueId> out;
  for (const HiddenVar& h : hidden) out.emplace(h.path, h.out);
  return out;
}

std::map<ValueId, Path> ModuleInfo::invar_to_hidden_path() const {
  std::map<ValueId, Path> out;
  for (const HiddenVar& h : hidden) out.emplace(h.in, h.path);
  return out;
}

std::map<ValueId, Path> ModuleInfo::outvar_to_hidden_path() const {
  std::map<ValueId, Path> out;
  for (const HiddenVar& h : hidden) out.emplace(h.out, h.path);
  return out;
}

std::vector<std::pair<ValueId, ValueId>> ModuleInfo::hidden_outvar_to_invar() const {
  std::vector<std::pair<ValueId, ValueId>> out;
  for (const HiddenVar& h : hidden) out.emplace_back(h.out, h.in);
  return out;
}

std::vector<ValueId> ModuleInfo::weight_invars() const {
  std::vector<ValueId> out;
  for (const WeightVar& w : weights) out.push_back(w.id);
  return out;
}

std::map<Path, std::vector<ValueId>> ModuleInfo::weight_path_to_invars() const {
  std::map<Path, std::vector<ValueId>> out;
  for (const WeightVar& w : weights) out[w.path].push_back(w.id);
  return out;
}

std::map<ValueId, Path> ModuleInfo::invar_to_weight_path() const {
  std::map<ValueId, Path> out;
  for (const WeightVar& w : weights) out.emplace(w.id, w.path);
  return out;
}

}  // namespace braintrace
