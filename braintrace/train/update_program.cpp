// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/update_program.h"

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/train/optimizer_program.h"

namespace braintrace {
namespace {

UpdateRule without_rate(UpdateRule rule) {
  std::visit([](auto& r) { r.lr = 0; }, rule);
  return rule;
}

}  // namespace

std::size_t leaf_of(const StepProgram& p, const std::string& gradient) {
  for (std::size_t k = 0; k < p.leaves.size(); ++k)
    if (p.leaves[k].parameter && p.leaves[k].name == gradient) return k;
  throw InternalError("a gradient without a parameter");
}

bool same_but_rate(const UpdateRule& a, const UpdateRule& b) {
  return without_rate(a) == without_rate(b);
}

StepProgram with_update(const StepProgram& p, const UpdateRule& rule) {
  BT_INVARIANT(p.num_signals == 0 && !p.num_moments);
  StepProgram out = p;
  const auto b = Builder::create();
  Values in;
  for (const Type& t : p.graph.input_types()) in.push_back(b->input(t));
  const Values before = inline_graph(p.graph, in);
  std::vector<std::map<std::string, Value>> moments(p.gradients.size());
  out.num_moments = 0;
  for (std::size_t i = 0; i < p.gradients.size(); ++i) {
    const Type& parameter = in[p.num_args + leaf_of(p, p.gradients[i])].type();
    for (const std::string& name : moment_names(rule))
      moments[i].emplace(name, b->input(parameter)), ++*out.num_moments;
  }
  const Type number{in.back().dtype(), {}};
  const Value rate = b->input(number), count = b->input(number);

  const auto part = [&](std::size_t first, std::size_t size) {
    const auto at = before.begin() + static_cast<std::ptrdiff_t>(first);
    return Values(at, at + static_cast<std::ptrdiff_t>(size));
  };
  Values results = part(0, p.first_trace_out()), after;
  for (std::size_t i = 0; i < p.gradients.size(); ++i) {
    const std::size_t leaf = leaf_of(p, p.gradients[i]);
    const Value& w = in[p.num_args + leaf];
    const Value g = astype(before[p.first_gradient() + i], w.dtype());
    const OptimizerStep s =
        optimizer_step(rule, w, g, astype(count, w.dtype()), moments[i]);
    out.leaves[leaf].exit = results.size();
    results.push_back(w + astype(-rate, w.dtype()) * s.step);
    for (const std::string& name : moment_names(rule))
      after.push_back(s.moments.at(name));
  }
  const Values traces = part(p.first_trace_out(), p.num_traces_out);
  results.insert(results.end(), traces.begin(), traces.end());
  results.insert(results.end(), after.begin(), after.end());
  out.gradients.clear();
  out.graph = b->finish(results);
  return out;
}

}  // namespace braintrace
