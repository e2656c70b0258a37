// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/perturbation.h"

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

std::vector<Array> HiddenPerturbation::init_perturb_data() const {
  std::vector<Array> out;
  for (const Type& t : perturb_types) out.push_back(zeros(t.shape, t.dtype));
  return out;
}

std::vector<Array> HiddenPerturbation::eval(
    const std::vector<Array>& inputs, const std::vector<Array>& perturb_data) const {
  std::vector<Array> in = inputs;
  in.insert(in.end(), perturb_data.begin(), perturb_data.end());
  return eval_graph(program, in);
}

std::vector<Array> HiddenPerturbation::perturb_data_to_hidden_group_data(
    const std::vector<Array>& data, const std::vector<HiddenGroup>& groups) const {
  BT_REQUIRE(
      data.size() == perturb_hidden_paths.size(),
      fmt::format("perturb_data_to_hidden_group_data: {} states are perturbed, got {} "
                  "arrays",
                  perturb_hidden_paths.size(), data.size()));
  std::map<Path, Array> by_path;
  for (std::size_t i = 0; i < data.size(); ++i)
    by_path[perturb_hidden_paths[i]] = data[i];
  std::vector<Array> out;
  for (const HiddenGroup& g : groups) {
    std::vector<Array> members;
    for (const Path& p : g.hidden_paths()) {
      BT_REQUIRE(by_path.contains(p),
                 fmt::format("perturb_data_to_hidden_group_data: {} is not perturbed",
                             to_string(p)));
      members.push_back(by_path.at(p));
    }
    out.push_back(g.concat_hidden(members));
  }
  return out;
}

HiddenPerturbation add_hidden_perturbation_from_minfo(const ModuleInfo& info) {
  const Graph& g = info.program();
  HiddenPerturbation result;
  const auto builder = Builder::create();
  std::vector<Value> env(g.num_values());
  for (ValueId v : g.inputs()) env[v.index] = builder->input(g.type(v));
  std::map<ValueId, Value> perturbation;
  for (const HiddenVar& h : info.hidden) {
    perturbation[h.out] = builder->input(g.type(h.out));
    result.perturb_hidden_paths.push_back(h.path);
    result.perturb_hidden_states.push_back(h.state);
    result.perturb_types.push_back(g.type(h.out));
  }
  for (const Node& n : g.nodes()) {
    std::vector<Value> in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    const std::vector<Value> out = builder->record(*n.op, in, n.attrs, n.loc);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const auto p = perturbation.find(n.outputs[k]);
      env[n.outputs[k].index] = p == perturbation.end() ? out[k] : out[k] + p->second;
    }
  }
  std::vector<Value> outputs;
  for (ValueId v : g.outputs()) outputs.push_back(env[v.index]);
  result.program = builder->finish(outputs);
  return result;
}

HiddenPerturbation add_hidden_perturbation_in_module(Module& model,
                                                     const std::vector<Array>& args,
                                                     const CompileOptions& options) {
  return add_hidden_perturbation_from_minfo(extract_module_info(model, args, options));
}

}  // namespace braintrace
