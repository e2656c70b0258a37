// SPDX-License-Identifier: Apache-2.0
#pragma once
// A traced step with everything the compiler looks up: which values are hidden states at
// step entry and exit, which are weights, and how the outputs are laid out.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "braintrace/etrace/diagnostics.h"
#include "braintrace/etrace/graph_index.h"
#include "braintrace/etrace/options.h"
#include "braintrace/model/step_model.h"

namespace braintrace {

// One hidden state. Canonical order = order of first touch.
struct HiddenVar {
  Path path;
  HiddenState* state = nullptr;
  ValueId in, out;
  Shape varshape;
  std::int64_t num_state = 1;
};

// One leaf of a parameter.
struct WeightVar {
  ValueId id;
  Path path;
  std::size_t leaf = 0;
  std::string key;  // "" for a bare array
};

struct ModuleInfo {
  StepModel step;  // after control flow has been made canonical
  ControlFlowPolicy control_flow;
  std::vector<HiddenVar> hidden;
  std::vector<WeightVar> weights;
  std::size_t num_var_out = 0;    // model outputs
  std::size_t num_var_state = 0;  // state leaves behind them; then hoisted values
  std::shared_ptr<const GraphIndex> index;
  std::set<std::size_t> descended_nodes;  // loops whose body is analysed on its own
  std::set<Path> descended_hidden;        // states such a loop updates
  std::vector<Path> unused_params;        // registered, but the step does not use them
  // Of a loop's body: constants made outside, at every step anew, of these parameters.
  std::map<ValueId, std::vector<Path>> made_outside;

  const Graph& program() const { return step.program; }
  const Graph& jaxpr() const { return step.program; }  // the reference's name

  const HiddenVar* hidden_at_input(ValueId v) const;
  const HiddenVar* hidden_at_output(ValueId v) const;
  const HiddenVar* hidden_at(const Path& p) const;
  const WeightVar* weight_at(ValueId v) const;
  std::vector<Path> param_paths() const;  // retrieved order

  // ---- the reference's names for the tables above (module_tables.cpp)
  const StepModel& stateful_model() const { return step; }
  const Graph& closed_jaxpr() const { return step.program; }  // constants are nodes
  // States the step uses, in module-walk order; captured ones last.
  std::vector<NamedState> retrieved_model_states() const;
  std::vector<State*> compiled_model_states() const;  // in order of first touch
  std::map<const State*, Path> state_id_to_path() const;
  // Leaves at step entry and exit, per compiled state.
  std::vector<std::vector<ValueId>> state_tree_invars() const;
  std::vector<std::vector<ValueId>> state_tree_outvars() const;
  std::map<Path, ValueId> hidden_path_to_invar() const;
  std::map<Path, ValueId> hidden_path_to_outvar() const;
  std::map<ValueId, Path> invar_to_hidden_path() const;
  std::map<ValueId, Path> outvar_to_hidden_path() const;
  // (at exit, at entry) in canonical order.
  std::vector<std::pair<ValueId, ValueId>> hidden_outvar_to_invar() const;
  std::vector<ValueId> weight_invars() const;  // all leaves of all parameters
  std::map<Path, std::vector<ValueId>> weight_path_to_invars() const;
  std::map<ValueId, Path> invar_to_weight_path() const;

  // More outputs behind the present ones; values already there are not repeated.
  ModuleInfo add_jaxpr_outs(const std::vector<ValueId>& values) const;

  struct StateOutvars {
    std::vector<ValueId> weight, hidden, other;
  };
  StateOutvars split_state_outvars() const;

  struct CallResult {
    std::vector<Array> out;
    std::map<Path, Array> etrace_vals;                    // hidden states
    std::map<Path, std::vector<Array>> other_state_vals;  // neither hidden nor parameter
    std::map<ValueId, Array> temps;  // outputs behind num_var_out, and every h_in
  };
  // One step from the given state leaves (default: the stored ones). Stores nothing.
  CallResult jaxpr_call(
      const std::vector<Array>& args,
      const std::optional<std::vector<Array>>& old_state_vals = {}) const;
  // Sorts the outputs of this program (or of its perturbed twin) into a CallResult.
  CallResult sort_outputs(const std::vector<Array>& inputs,
                          const std::vector<Array>& outputs) const;

  // Field name -> short text, in field order.
  std::vector<std::pair<std::string, std::string>> dict() const;

 private:
  friend ModuleInfo bind_tables(StepModel, const ControlFlowPolicy&,
                                std::vector<HiddenVar>, std::vector<WeightVar>);
  std::map<ValueId, std::size_t> hidden_in_, hidden_out_, weight_;
};

// Tables for a step whose hidden outputs are distinct values (see canonical_step).
ModuleInfo bind(StepModel step, const ControlFlowPolicy& policy);
// The same with given tables.
ModuleInfo bind_tables(StepModel step, const ControlFlowPolicy& policy,
                       std::vector<HiddenVar> hidden, std::vector<WeightVar> weights);
// The same step with another program of the same inputs and, for the first `num_outputs`,
// the same outputs.
ModuleInfo rebind(const ModuleInfo& info, Graph program, std::size_t num_outputs);

// Traces the model, records state mismatches, makes control flow canonical, binds.
// Needs: states initialised. UserError: a parameter written in the step.
ModuleInfo extract_module_info(Module& model, const std::vector<Array>& args,
                               const CompileOptions& options, Diagnostics& diagnostics);
ModuleInfo extract_module_info(Module& model, const std::vector<Array>& args,
                               const CompileOptions& options = {});

}  // namespace braintrace
