// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/perturbation.h"

#include <fmt/format.h>

#include "braintrace/etrace/evaluation.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

std::vector<ValueId> HiddenPerturbation::perturb_vars() const {
  const auto p = program.inputs().last(perturb_types.size());
  return {p.begin(), p.end()};
}

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

namespace {

// h_out := h_out + p, wherever a hidden state is made.
class PerturbedRewrite : public GraphRewrite {
 public:
  explicit PerturbedRewrite(const ModuleInfo& info) : GraphRewrite(info.program()) {
    for (const HiddenVar& h : info.hidden)
      perturbation_[h.out] = builder().input(graph().type(h.out));
  }

  Graph run() {
    evaluate(graph());
    return builder().finish(values(graph().outputs()));
  }

 private:
  void eval_node(std::size_t i, const Node& n) override {
    GraphRewrite::eval_node(i, n);
    std::vector<Value> out = values(n.outputs);
    for (std::size_t k = 0; k < out.size(); ++k)
      if (const auto p = perturbation_.find(n.outputs[k]); p != perturbation_.end())
        out[k] = out[k] + p->second;
    define(n, out);
  }

  std::map<ValueId, Value> perturbation_;
};

}  // namespace

HiddenPerturbation add_hidden_perturbation_from_minfo(const ModuleInfo& info) {
  HiddenPerturbation result;
  for (const HiddenVar& h : info.hidden) {
    result.perturb_hidden_paths.push_back(h.path);
    result.perturb_hidden_states.push_back(h.state);
    result.perturb_types.push_back(info.program().type(h.out));
  }
  result.program = PerturbedRewrite(info).run();
  return result;
}

HiddenPerturbation add_hidden_perturbation_in_module(Module& model,
                                                     const std::vector<Array>& args,
                                                     const CompileOptions& options) {
  return add_hidden_perturbation_from_minfo(extract_module_info(model, args, options));
}

}  // namespace braintrace
