// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/vjp_executor.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/subgraph.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace {
namespace {

CompileOptions graph_options(const VjpExecutorOptions& o) {
  const bool mixing = o.include_recurrent_mixing;
  BT_REQUIRE_KIND(mixing || !o.sparse_n, ErrorKind::not_supported,
                  "ETraceVjpGraphExecutor: sparse_n needs include_recurrent_mixing");
  BT_REQUIRE_KIND(mixing || !o.full_jacobian, ErrorKind::not_supported,
                  "ETraceVjpGraphExecutor: full_jacobian needs include_recurrent_mixing");
  CompileOptions g = o.graph;
  g.include_recurrent_mixing = mixing;
  g.sparse_n = o.sparse_n;
  g.snap_max_jacobian_elements = o.snap_max_jacobian_elements;
  g.include_hidden_perturb = o.vjp_method == VjpMethod::single_step;
  return g;
}

// The time axis all several-step arguments share; 0: one step.
std::int64_t num_steps(const std::vector<StepArgument>& args) {
  std::int64_t steps = 0;
  for (const StepArgument& a : args) {
    if (!a.multi_step) continue;
    const std::int64_t n = a.value.shape()[0];
    BT_REQUIRE(steps == 0 || steps == n,
               fmt::format("ETraceVjpGraphExecutor: MultiStepData of unequal lengths {} "
                           "and {}",
                           steps, n));
    steps = n;
  }
  return steps;
}

Array entry_at(const Array& a, std::int64_t t) {
  Shape size = a.shape();
  Ints start(size.size(), 0), step(size.size(), 1);
  start[0] = t;
  size[0] = 1;
  return a.sliced(start, size, step).reshaped(Shape(size.begin() + 1, size.end()));
}

Array over_time(const std::vector<Array>& parts) {
  return stack(Values(parts.begin(), parts.end()), 0).array();
}

}  // namespace

// Outputs of the graph: [results | exits | reads].
struct ETraceVjpGraphExecutor::Program {
  LossProgram forward;
  // (inputs, cotangent of each float output of [results | exits]) -> (outputs, cotangent
  // of each active input)
  Graph reverse;
  std::vector<bool> active;  // per input of the forward program
  std::vector<Path> hidden;  // in the order of the perturbations
};

ETraceVjpGraphExecutor::ETraceVjpGraphExecutor(Module& model, VjpExecutorOptions options)
    : ETraceGraphExecutor(model, graph_options(options)), options_(std::move(options)) {}

ETraceVjpGraphExecutor::~ETraceVjpGraphExecutor() = default;

// Parameters are constants under single_step; a refused one has no adjoint ever.
void ETraceVjpGraphExecutor::add_reverse(Program& p) const {
  const Graph& g = p.forward.graph;
  const std::size_t kept = g.outputs().size() - p.forward.reads.size();
  const Graph run = subgraph(g, g.inputs(), g.outputs().first(kept));
  std::set<const State*> constant;
  const bool single = options_.vjp_method == VjpMethod::single_step;
  for (const ParameterVerdict& v : graph().verdicts)
    if (const StepState* used = graph().module_info.step.find(v.path);
        used && (single || v.verdict == Verdict::refused))
      constant.insert(used->state);
  for (const Type& t : run.input_types()) p.active.push_back(is_float(t.dtype));
  for (std::size_t k = 0; k < p.forward.leaves.size(); ++k)
    if (constant.contains(p.forward.leaves[k].state))
      p.active[p.forward.num_args + k] = false;
  p.reverse = vjp(run, p.active);
  for (const HiddenVar& h : graph().module_info.hidden) p.hidden.push_back(h.path);
}

std::shared_ptr<const ETraceVjpGraphExecutor::Program> ETraceVjpGraphExecutor::program(
    const std::vector<StepArgument>& args, Want want) {
  std::string key = want == Want::residual ? "residual" : "jacobians";
  std::vector<Type> types;
  for (const StepArgument& a : args) {
    types.push_back(type_of(a.value));
    key += fmt::format(" {}{}", a.multi_step ? "*" : "", to_string(types.back()));
  }
  std::shared_ptr<const Program>& known = programs_[key];
  if (known) return known;
  const bool single = options_.vjp_method == VjpMethod::single_step;
  const std::int64_t steps = num_steps(args);
  const bool perturb = want == Want::residual && single;
  LossTracer tracer(graph(), jacobians_->reads,
                    {.perturb = perturb, .window = steps > 0, .detach_while = single});
  auto p = std::make_shared<Program>();
  const auto step = [&](const Values& in) {
    Values given;
    for (std::size_t i = 0; i < in.size(); ++i) {
      Shape repeated = in[i].shape();
      repeated.insert(repeated.begin(), steps);
      given.push_back(steps > 0 && !args[i].multi_step
                          ? broadcast_to(expand_dims(in[i], 0), repeated)
                          : in[i]);
    }
    return LossResult{.loss = {}, .results = tracer.splice(given)};
  };
  p->forward = tracer.run(types, step, "ETraceVjpGraphExecutor");
  if (want == Want::residual) add_reverse(*p);
  return known = p;
}

namespace {

// Jacobians of one step from the values it reads.
StepJacobians evaluate(const JacobianProgram& p, const std::vector<Array>& reads) {
  const std::vector<Array> out = eval_graph(p.graph, reads);
  StepJacobians j;
  std::size_t at = 0;
  for (const std::vector<std::size_t>& readers : p.x) {
    for (std::size_t r : readers) j.x[r] = out[at];
    ++at;
  }
  for (const auto& key : p.df) j.df[key] = out[at++];
  for (std::size_t g = 0; g < p.num_groups; ++g) j.D.push_back(out[at++]);
  return j;
}

StepJacobians stacked_over_time(const std::vector<StepJacobians>& steps) {
  StepJacobians all;
  const auto gather = [&](const auto& pick) {
    std::vector<Array> parts;
    for (const StepJacobians& s : steps) parts.push_back(pick(s));
    return over_time(parts);
  };
  for (const auto& [key, unused] : steps[0].x)
    all.x[key] = gather([&](const StepJacobians& s) { return s.x.at(key); });
  for (const auto& [key, unused] : steps[0].df)
    all.df[key] = gather([&](const StepJacobians& s) { return s.df.at(key); });
  for (std::size_t g = 0; g < steps[0].D.size(); ++g)
    all.D.push_back(gather([&](const StepJacobians& s) { return s.D[g]; }));
  return all;
}

const HiddenVar* hidden_of(const ETraceGraph& g, const State* s) {
  for (const HiddenVar& h : g.module_info.hidden)
    if (h.state == s) return &h;
  return nullptr;
}

}  // namespace

namespace {

// One per float output of [results | exits].
std::vector<Array> cotangents(const ETraceGraph& g, const LossProgram& f,
                              const StepCotangents& ct) {
  std::vector<std::optional<Array>> given(f.graph.outputs().size() - f.reads.size());
  BT_REQUIRE(ct.out.size() <= f.num_results,
             fmt::format("residual: the step has {} outputs, got {} cotangents",
                         f.num_results, ct.out.size()));
  std::copy(ct.out.begin(), ct.out.end(), given.begin());
  for (const ProgramLeaf& leaf : f.leaves) {
    if (!leaf.exit) continue;
    const HiddenVar* h = hidden_of(g, leaf.state);
    if (h && ct.hidden.contains(h->path)) given[*leaf.exit] = ct.hidden.at(h->path);
    if (!h && ct.other.contains(leaf.name)) given[*leaf.exit] = ct.other.at(leaf.name);
  }
  std::vector<Array> out;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Type& t = f.graph.type(f.graph.outputs()[i]);
    if (!is_float(t.dtype)) continue;
    BT_REQUIRE(!given[i] || given[i]->shape() == t.shape,
               fmt::format("residual: a cotangent must have the shape {}, got {}",
                           to_string(t.shape), to_string(given[i]->shape())));
    out.push_back(given[i] ? given[i]->astype(t.dtype).contiguous()
                           : zeros(t.shape, t.dtype));
  }
  return out;
}

}  // namespace

StepSolution ETraceVjpGraphExecutor::values(const Program& p,
                                            const std::vector<Array>& out) const {
  StepSolution s;
  s.out.assign(out.begin(),
               out.begin() + static_cast<std::ptrdiff_t>(p.forward.num_results));
  for (const ProgramLeaf& leaf : p.forward.leaves) {
    if (leaf.parameter) continue;
    const Array value = leaf.exit ? out[*leaf.exit] : leaf.state->stored(leaf.leaf);
    if (const HiddenVar* h = hidden_of(graph(), leaf.state))
      s.hidden_vals[h->path] = value;
    else
      s.other_vals[leaf.name] = value;
  }
  return s;
}

StepSolution ETraceVjpGraphExecutor::solve(const std::vector<StepArgument>& args,
                                           const TraceStepper& stepper,
                                           std::vector<Array> etrace, Want want) {
  compile_graph(args);
  if (!context_) {
    context_ = std::make_unique<RuleContext>(graph(), D_RTRL{}, LearningOptions{});
    jacobians_ = std::make_unique<JacobianProgram>(
        jacobian_program(*context_, options_.full_jacobian ? HiddenJacobian::full
                                                           : HiddenJacobian::as_config));
  }
  const std::int64_t steps = num_steps(args);
  BT_REQUIRE(!stepper || steps > 0,
             "ETraceVjpGraphExecutor: a stepper needs MultiStepData");
  const std::shared_ptr<const Program> p = program(args, want);
  std::vector<Array> in;
  for (const StepArgument& a : args) in.push_back(a.value);
  for (const ProgramLeaf& leaf : p->forward.leaves)
    in.push_back(leaf.state->stored(leaf.leaf));
  for (const Type& t : p->forward.perturbations) in.push_back(zeros(t.shape, t.dtype));
  const std::vector<Array> out = eval_graph(p->forward.graph, in);

  StepSolution s = values(*p, out);
  std::vector<StepJacobians> all;
  for (std::int64_t t = 0; t < std::max<std::int64_t>(steps, 1); ++t) {
    std::vector<Array> reads;
    for (const ExposedRead& r : p->forward.reads)
      reads.push_back(r.has_time ? entry_at(out[r.output], t) : out[r.output]);
    StepJacobians j = evaluate(*jacobians_, reads);
    if (stepper)
      etrace = stepper(etrace, j);
    else
      all.push_back(std::move(j));
  }
  if (stepper)
    s.final_etrace = std::move(etrace);
  else
    s.jacobians = steps > 0 ? stacked_over_time(all) : std::move(all[0]);
  if (want == Want::residual) s.residual = residual(p, std::move(in));
  return s;
}

StepResidual ETraceVjpGraphExecutor::residual(std::shared_ptr<const Program> p,
                                              std::vector<Array> inputs) const {
  const ETraceGraph* g = &graph();
  return [p, g, inputs = std::move(inputs)](const StepCotangents& ct) {
    const LossProgram& f = p->forward;
    std::vector<Array> in = inputs;
    const std::vector<Array> cts = cotangents(*g, f, ct);
    in.insert(in.end(), cts.begin(), cts.end());
    const std::vector<Array> out = eval_graph(p->reverse, in);
    std::size_t at = f.graph.outputs().size() - f.reads.size();
    StepAdjoints a;
    for (std::size_t i = 0; i < f.num_args; ++i)
      a.args.push_back(p->active[i] ? std::optional(out[at++]) : std::nullopt);
    for (std::size_t k = 0; k < f.leaves.size(); ++k) {
      if (!p->active[f.num_args + k]) continue;
      const ProgramLeaf& leaf = f.leaves[k];
      if (leaf.parameter)
        a.params[leaf.name] = out[at++];
      else if (const HiddenVar* h = hidden_of(*g, leaf.state))
        a.hidden[h->path] = out[at++];
      else
        a.other[leaf.name] = out[at++];
    }
    for (std::size_t k = 0; k < f.perturbations.size(); ++k)
      if (p->active[f.first_perturbation() + k]) a.perturb[p->hidden[k]] = out[at++];
    return a;
  };
}

StepSolution ETraceVjpGraphExecutor::solve_h2w_h2h_jacobian(
    const std::vector<StepArgument>& args, const TraceStepper& stepper,
    std::vector<Array> init_etrace) {
  return solve(args, stepper, std::move(init_etrace), Want::jacobians);
}

StepSolution ETraceVjpGraphExecutor::solve_h2w_h2h_l2h_jacobian(
    const std::vector<StepArgument>& args, const TraceStepper& stepper,
    std::vector<Array> init_etrace) {
  BT_REQUIRE_KIND(num_steps(args) == 0 || options_.vjp_method == VjpMethod::multi_step,
                  ErrorKind::not_implemented,
                  "ETraceVjpGraphExecutor: MultiStepData under a residual needs "
                  "vjp_method multi-step");
  return solve(args, stepper, std::move(init_etrace), Want::residual);
}

}  // namespace braintrace
