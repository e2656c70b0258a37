// SPDX-License-Identifier: Apache-2.0
// One step alone: signals and what they earn.
#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/cut_program.h"
#include "braintrace/testing/cut_step_impl.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace::testing {
namespace {

std::vector<Array> inputs_of(const ModuleInfo& info, const StepInputs& given) {
  std::vector<Array> in = given;
  for (const Array& a : read_states(info.step)) in.push_back(a);
  return in;
}

}  // namespace

std::vector<Array> exit_adjoints(const ETraceGraph& graph, const StepInputs& inputs,
                                 const StepLoss& loss) {
  const ModuleInfo& info = graph.module_info;
  const CutStep cut(graph);
  const auto builder = Builder::create();
  const std::vector<Array> numbers = inputs_of(info, inputs);
  Values in(numbers.begin(), numbers.end());
  std::vector<Array> zero;
  for (const HiddenVar& h : info.hidden) {
    const Type t = info.program().type(h.out);
    zero.push_back(zeros(t.shape, t.dtype));
    in.push_back(builder->input(t));
  }
  const Values out = inline_graph(cut.perturbed, in);
  const auto end = out.begin() + static_cast<std::ptrdiff_t>(info.num_var_out);
  const Graph g = builder->finish(std::vector{loss(0, Values(out.begin(), end))});
  std::vector<bool> active;
  for (const Array& z : zero) active.push_back(is_float(z.dtype()));
  const std::vector<Array> r = eval_graph(grad(g, active), zero);
  std::map<Path, Array> by_path;
  std::size_t next = 0;
  for (std::size_t h = 0; h < info.hidden.size(); ++h)
    by_path[info.hidden[h].path] = active[h] ? r[next++] : zero[h];
  std::vector<Array> groups;
  for (const HiddenGroup& group : graph.hidden_groups) {
    std::vector<Array> members;
    for (const Path& p : group.hidden_paths()) members.push_back(by_path.at(p));
    groups.push_back(group.concat_hidden(members));
  }
  return groups;
}

StateDict signals_meet_instant(const ETraceGraph& graph, const StepInputs& inputs,
                               const std::vector<Array>& signals) {
  const ModuleInfo& info = graph.module_info;
  const CutStep cut(graph);
  const auto builder = Builder::create();
  const std::vector<Array> numbers = inputs_of(info, inputs);
  Values fixed(numbers.begin(), numbers.end()), alive = fixed;
  std::vector<std::string> names;
  std::vector<Array> at;
  std::size_t place = info.step.num_args;
  for (const StepState& s : info.step.states)
    for (std::size_t k = 0; k < s.in.size(); ++k, ++place) {
      if (s.kind != StateKind::param || !is_float(numbers[place].dtype())) continue;
      const std::string& key = s.state->spec(k).key;
      names.push_back(to_slashes(key.empty() ? s.path : s.path.child(key)));
      at.push_back(numbers[place]);
      alive[place] = builder->input(type_of(numbers[place]));
    }
  Value total = scalar(0, DType::f64);
  for (const CutStep::Feed& f : cut.feeds) {
    Values in = fixed;
    for (const Value& w : inline_graph(f.operands, alive)) in.push_back(w);
    const Value members =
        graph.hidden_groups[f.group].concat_hidden(inline_graph(f.fed, in));
    total = total + sum(members * Value(signals[f.group]));
  }
  StateDict out;
  if (total.is_concrete()) return out;
  const Graph g = builder->finish(std::vector{total});
  const std::vector<Array> r =
      eval_graph(grad(g, std::vector<bool>(at.size(), true)), at);
  for (std::size_t i = 0; i < names.size(); ++i) out.emplace(names[i], r[i]);
  return out;
}

}  // namespace braintrace::testing
