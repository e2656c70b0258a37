// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/module_info.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/etrace/canonicalize.h"
#include "braintrace/ir/evaluate.h"

namespace braintrace {
namespace {

template <class T>
const T* look_up(const std::map<ValueId, std::size_t>& table, const std::vector<T>& rows,
                 ValueId v) {
  const auto it = table.find(v);
  return it == table.end() ? nullptr : &rows[it->second];
}

// The parameters among the states the step does not use.
std::vector<Path> unused_params_of(const Module& model, const StepModel& step) {
  std::vector<Path> out;
  for (const NamedState& n : collect_states(model))
    if (n.state->kind() == StateKind::param && !step.find(n.path)) out.push_back(n.path);
  return out;
}

void note_mismatches(const StepModel& step, const std::vector<Path>& unused_params,
                     Diagnostics& d) {
  for (const Path& p : step.unused) {
    CompilationRecord r{
        .kind = DiagnosticKind::state_mismatch,
        .level = DiagnosticLevel::warning,
        .message = fmt::format("state {} is registered in the model but the step does "
                               "not use it",
                               to_string(p)),
        .context = {{"direction", "'retrieved_not_in_compiled'"},
                    {"path", to_string(p)}}};
    if (std::find(unused_params.begin(), unused_params.end(), p) != unused_params.end())
      r.weight_path = p;
    d.note(std::move(r));
  }
  for (const Path& p : step.captured)
    d.note({.kind = DiagnosticKind::state_mismatch,
            .level = DiagnosticLevel::warning,
            .message =
                fmt::format("a state the step uses is not registered in the model; it "
                            "is listed as {}",
                            to_string(p)),
            .context = {{"direction", "'compiled_not_in_retrieved'"},
                        {"path", to_string(p)}}});
}

}  // namespace

const HiddenVar* ModuleInfo::hidden_at_input(ValueId v) const {
  return look_up(hidden_in_, hidden, v);
}

const HiddenVar* ModuleInfo::hidden_at_output(ValueId v) const {
  return look_up(hidden_out_, hidden, v);
}

const HiddenVar* ModuleInfo::hidden_at(const Path& p) const {
  for (const HiddenVar& h : hidden)
    if (h.path == p) return &h;
  return nullptr;
}

const WeightVar* ModuleInfo::weight_at(ValueId v) const {
  return look_up(weight_, weights, v);
}

std::vector<Path> ModuleInfo::param_paths() const {
  std::vector<Path> out;
  for (std::size_t i : step.retrieved)
    if (step.states[i].kind == StateKind::param) out.push_back(step.states[i].path);
  return out;
}

ModuleInfo ModuleInfo::add_jaxpr_outs(const std::vector<ValueId>& values) const {
  const Graph& g = program();
  GraphParts p;
  for (std::uint32_t i = 0; i < g.num_values(); ++i) p.types.push_back(g.type({i}));
  p.inputs.assign(g.inputs().begin(), g.inputs().end());
  p.nodes.assign(g.nodes().begin(), g.nodes().end());
  p.outputs.assign(g.outputs().begin(), g.outputs().end());
  std::set<ValueId> seen(p.outputs.begin(), p.outputs.end());
  for (ValueId v : values) {
    BT_REQUIRE_KIND(
        v.index < g.num_values(), ErrorKind::type,
        fmt::format("add_jaxpr_outs: %{} is no value of the program", v.index));
    if (seen.insert(v).second) p.outputs.push_back(v);
  }
  ModuleInfo info = *this;
  info.step.program = Graph(std::move(p));
  info.index = std::make_shared<GraphIndex>(info.step.program);
  return info;
}

ModuleInfo::StateOutvars ModuleInfo::split_state_outvars() const {
  StateOutvars out;
  for (const StepState& s : step.states) {
    std::vector<ValueId>& list = s.kind == StateKind::param ? out.weight
                                 : is_hidden(s.kind)        ? out.hidden
                                                            : out.other;
    list.insert(list.end(), s.out.begin(), s.out.end());
  }
  return out;
}

ModuleInfo::CallResult ModuleInfo::sort_outputs(const std::vector<Array>& inputs,
                                                const std::vector<Array>& outputs) const {
  CallResult r;
  r.out.assign(outputs.begin(),
               outputs.begin() + static_cast<std::ptrdiff_t>(num_var_out));
  std::size_t next = num_var_out;
  for (const StepState& s : step.states) {
    for (std::size_t i = 0; i < s.out.size(); ++i, ++next) {
      if (is_hidden(s.kind)) r.etrace_vals[s.path] = outputs[next];
      if (s.kind == StateKind::short_term)
        r.other_state_vals[s.path].push_back(outputs[next]);
    }
  }
  for (std::size_t i = num_var_out; i < program().outputs().size(); ++i)
    r.temps[program().outputs()[i]] = outputs[i];
  for (std::size_t i = 0; i < program().inputs().size(); ++i)
    if (hidden_at_input(program().inputs()[i]))
      r.temps[program().inputs()[i]] = inputs[i];
  return r;
}

ModuleInfo::CallResult ModuleInfo::jaxpr_call(
    const std::vector<Array>& args,
    const std::optional<std::vector<Array>>& old_state_vals) const {
  std::vector<Array> in = args;
  const std::vector<Array> states = old_state_vals ? *old_state_vals : read_states(step);
  in.insert(in.end(), states.begin(), states.end());
  return sort_outputs(in, eval_graph(program(), in));
}

std::vector<std::pair<std::string, std::string>> ModuleInfo::dict() const {
  return {
      {"program", fmt::format("{} nodes", program().nodes().size())},
      {"states", fmt::format("{}", step.states.size())},
      {"hidden", fmt::format("{}", hidden.size())},
      {"weights", fmt::format("{}", weights.size())},
      {"num_var_out", fmt::format("{}", num_var_out)},
      {"num_var_state", fmt::format("{}", num_var_state)},
  };
}

ModuleInfo bind_tables(StepModel step, const ControlFlowPolicy& policy,
                       std::vector<HiddenVar> hidden, std::vector<WeightVar> weights) {
  ModuleInfo info;
  info.step = std::move(step);
  info.control_flow = policy;
  info.num_var_out = info.step.num_outputs;
  info.num_var_state = info.step.program.outputs().size() - info.num_var_out;
  info.hidden = std::move(hidden);
  info.weights = std::move(weights);
  for (std::size_t i = 0; i < info.hidden.size(); ++i) {
    info.hidden_in_[info.hidden[i].in] = i;
    info.hidden_out_[info.hidden[i].out] = i;
  }
  for (std::size_t i = 0; i < info.weights.size(); ++i)
    info.weight_[info.weights[i].id] = i;
  info.index = std::make_shared<GraphIndex>(info.step.program);
  return info;
}

ModuleInfo bind(StepModel step, const ControlFlowPolicy& policy) {
  std::vector<HiddenVar> hidden;
  std::vector<WeightVar> weights;
  for (const StepState& s : step.states) {
    if (is_hidden(s.kind)) {
      auto* state = static_cast<HiddenState*>(s.state);
      hidden.push_back(
          {s.path, state, s.in[0], s.out[0], state->varshape(), state->num_state()});
    } else if (s.kind == StateKind::param) {
      for (std::size_t i = 0; i < s.in.size(); ++i)
        weights.push_back({s.in[i], s.path, i, s.state->spec(i).key});
    }
  }
  return bind_tables(std::move(step), policy, std::move(hidden), std::move(weights));
}

ModuleInfo rebind(const ModuleInfo& info, Graph program, std::size_t num_outputs) {
  StepModel step = info.step;
  step.program = std::move(program);
  std::size_t in = step.num_args, out = step.num_outputs;
  for (StepState& s : step.states) {
    for (std::size_t i = 0; i < s.in.size(); ++i) {
      s.in[i] = step.program.inputs()[in++];
      s.out[i] = step.program.outputs()[out++];
    }
  }
  BT_INVARIANT(out == num_outputs);
  ModuleInfo result = bind(std::move(step), info.control_flow);
  result.unused_params = info.unused_params;
  result.num_var_state = num_outputs - result.num_var_out;
  return result;
}

ModuleInfo extract_module_info(Module& model, const std::vector<Array>& args,
                               const CompileOptions& options, Diagnostics& diagnostics) {
  validate(options.control_flow);
  const StepModel step = trace_step(model, args);
  const std::vector<Path> unused = unused_params_of(model, step);
  note_mismatches(step, unused, diagnostics);
  ModuleInfo info =
      bind(canonical_step(step, options, diagnostics), options.control_flow);
  info.unused_params = unused;
  return info;
}

ModuleInfo extract_module_info(Module& model, const std::vector<Array>& args,
                               const CompileOptions& options) {
  Diagnostics unused;
  return extract_module_info(model, args, options, unused);
}

}  // namespace braintrace
