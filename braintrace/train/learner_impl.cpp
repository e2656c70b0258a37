// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/learner_impl.h"

#include <cmath>

#include <fmt/format.h>

namespace braintrace {
namespace {

CompileOptions graph_options(const Algorithm& a, const LearnerOptions& o) {
  CompileOptions g = o.graph;
  g.batched = o.batch_size.has_value() && !o.vmap;
  const RecurrenceScope scope = a.config.recurrence_scope();
  g.include_recurrent_mixing = scope != RecurrenceScope::diagonal;
  if (scope == RecurrenceScope::sparse_n) g.sparse_n = a.config.sparse_n();
  g.snap_max_jacobian_elements = a.options.snap_max_jacobian_elements;
  return g;
}

Array first_lane(const Array& a, std::int64_t lanes) {
  BT_REQUIRE(!a.shape().empty() && a.shape()[0] == lanes,
             fmt::format("compile: vmap over {} lanes needs examples with that leading "
                         "axis, got {}",
                         lanes, to_string(a.shape())));
  Shape size = a.shape();
  size[0] = 1;
  const Ints start(size.size(), 0), step(size.size(), 1);
  return a.sliced(start, size, step).reshaped(Shape(size.begin() + 1, size.end()));
}

}  // namespace

std::optional<std::int64_t> Learner::Impl::lanes() const {
  return options.vmap ? options.batch_size : std::optional<std::int64_t>{};
}

void Learner::Impl::compile(const std::vector<Array>& args) {
  InitOptions init{.dtype = options.dtype};
  if (!rule) init.seed = options.seed;  // parameters are drawn once
  if (!options.vmap) init.batch_size = options.batch_size;
  init_all_states(model, init);
  DType dtype = options.dtype.value_or(DType::f32);
  for (const NamedState& s : collect_states(model))
    if (s.state->kind() == StateKind::param && is_float(s.state->stored().dtype()))
      dtype = s.state->stored().dtype();
  examples.clear();
  for (const Array& a : args) {
    const Array one = options.vmap ? first_lane(a, *options.batch_size) : a;
    examples.push_back(is_float(one.dtype()) ? one.astype(dtype) : one);
  }
  auto graph = std::make_shared<ETraceGraph>(
      compile_etrace_graph(model, examples, graph_options(algorithm, options)));
  rule = std::make_unique<CompiledRule>(std::move(graph), algorithm, options.learning);
  check_relations();
  if (options.vmap) {
    init.batch_size = options.batch_size;
    init.seed.reset();  // the parameters stay
    init_all_states(model, init);
  }
  programs.clear();
  clear_traces();
}

void Learner::Impl::check_relations() const {
  const bool traceless =
      algorithm.engine == Engine::bptt || algorithm.engine == Engine::exact_rtrl;
  BT_REQUIRE_KIND(traceless || !rule->graph().hidden_param_op_relations.empty(),
                  ErrorKind::compilation,
                  fmt::format("compile: {} found no trainable op that reaches a hidden "
                              "state; there is nothing to trace",
                              algorithm.name));
}

void Learner::Impl::rebatch(std::int64_t batch_size) {
  const std::int64_t old = *options.batch_size;
  options.batch_size = batch_size;
  std::vector<Array> args;
  for (const Array& a : examples) {
    if (options.vmap) {
      Shape s = a.shape();
      s.insert(s.begin(), batch_size);
      args.push_back(zeros(s, a.dtype()));
      continue;
    }
    Shape s = a.shape();
    BT_REQUIRE(!s.empty() && s[0] == old,
               "reset_state: an input without a batch axis cannot change its batch size");
    s[0] = batch_size;
    args.push_back(zeros(s, a.dtype()));
  }
  const std::optional<Type> modulator = rule->modulator;
  FeedbackMatrices feedback = rule->feedback;
  compile(args);
  rule->modulator = modulator;
  rule->feedback = std::move(feedback);
}

void Learner::Impl::clear_traces() {
  traces.clear();
  for (const TraceSlot& t : rule->traces()) {
    Type type = t.type;
    if (lanes()) type.shape.insert(type.shape.begin(), *lanes());
    if (t.initial)
      traces.push_back(t.initial->broadcast_to(type.shape).contiguous());
    else
      traces.push_back(zeros(type.shape, type.dtype));
  }
}

std::vector<Array> Learner::Impl::cast(const std::vector<Array>& args) const {
  DType dtype = rule->scalar_dtype();
  for (const Array& e : examples)
    if (is_float(e.dtype())) dtype = e.dtype();
  std::vector<Array> out;
  for (const Array& a : args)
    out.push_back(is_float(a.dtype()) && a.dtype() != dtype ? a.astype(dtype) : a);
  return out;
}

std::shared_ptr<Executable> Learner::Impl::traced(const std::vector<Type>& args,
                                                  const TracedFn& fn,
                                                  const StepRequest& request,
                                                  std::string_view caller) {
  BT_REQUIRE(!tracer, fmt::format("{}: called inside a loss function", caller));
  LossTracer local(rule->graph(), rule->reads(), splice_options(*rule, request));
  struct Active {
    Impl& impl;
    Active(Impl& i, LossTracer* t, bool window) : impl(i) {
      impl.tracer = t;
      impl.tracing_window = window;
    }
    ~Active() { impl.tracer = nullptr; }
  };
  LossProgram loss;
  {
    const Active active(*this, &local, request.window > 0);
    loss = local.run(args, fn, caller);
  }
  std::uint64_t key = structural_hash(loss.graph);
  for (std::uint64_t part : {static_cast<std::uint64_t>(request.gradient),
                             static_cast<std::uint64_t>(request.window),
                             static_cast<std::uint64_t>(loss.has_loss),
                             static_cast<std::uint64_t>(loss.num_results)})
    key = key * 1099511628211ULL + part;
  for (const std::string& w : request.weights)
    key = key * 1099511628211ULL + std::hash<std::string>{}(w);
  std::shared_ptr<Executable>& e = programs[key];
  if (!e)
    e = std::make_shared<Executable>(assemble(*rule, loss, request), options.executor,
                                     options.threads);
  return e;
}

std::shared_ptr<Executable> Learner::Impl::evolve_program(const std::vector<Array>& args,
                                                          std::int64_t window) {
  std::vector<Type> types;
  for (const Array& a : args) types.push_back(type_of(a));
  StepRequest request{.gradient = false, .lanes = lanes(), .window = window};
  const auto fn = [this](const Values& in) {
    return LossResult{.loss = {}, .results = tracer->splice(in)};
  };
  return traced(types, fn, request, "learner");
}

std::shared_ptr<Executable> Learner::Impl::gradient_program(
    const std::vector<Type>& args, const TracedFn& fn,
    const std::vector<std::string>& weights, std::int64_t window,
    std::string_view caller) {
  StepRequest request{
      .gradient = true, .weights = weights, .lanes = lanes(), .window = window};
  return traced(args, fn, request, caller);
}

std::vector<Array> Learner::Impl::call(Executable& e, const std::vector<Array>& args,
                                       const std::vector<double>& loss_weights,
                                       std::string_view caller) {
  const StepProgram& p = e.program();
  BT_REQUIRE(args.size() == p.num_args, fmt::format("{}: {} arguments expected, got {}",
                                                    caller, p.num_args, args.size()));
  std::vector<Array> in = args;
  for (const ProgramLeaf& leaf : p.leaves) in.push_back(leaf.state->stored(leaf.leaf));
  in.insert(in.end(), traces.begin(), traces.end());
  const DType dtype = rule->scalar_dtype();
  in.push_back(scalar(static_cast<double>(calls), dtype));
  in.push_back(scalar(static_cast<double>(trace_steps), dtype));
  for (const RuleInput& r : p.inputs) {
    const auto it = rule_inputs.find(r.name);
    BT_REQUIRE_KIND(
        it != rule_inputs.end(), ErrorKind::runtime,
        fmt::format("{}: the rule needs '{}' at every step and none was given", caller,
                    r.name));
    in.push_back(it->second);
  }
  if (!loss_weights.empty()) {
    const Type t = p.graph.type(p.graph.inputs().back());
    Array w = zeros(t.shape, DType::f64);
    BT_INVARIANT(w.size() == static_cast<std::int64_t>(loss_weights.size()));
    std::copy(loss_weights.begin(), loss_weights.end(), w.mutable_data<double>());
    in.push_back(w.astype(t.dtype));
  }
  e.run(in, caller);
  if (options.learning.check_finite) require_finite(e, caller);
  commit(e);
  std::vector<Array> results;
  for (std::size_t i = 0; i < p.num_results; ++i)
    results.push_back(e.output((p.has_loss ? 1 : 0) + i));
  return results;
}

void Learner::Impl::require_finite(Executable& e, std::string_view caller) const {
  for (const auto& [leaf, g] : e.gradients())
    for (double v : g.to_doubles())
      BT_REQUIRE_KIND(std::isfinite(v), ErrorKind::runtime,
                      fmt::format("{}: the gradient of {} holds {}", caller, leaf, v));
}

void Learner::Impl::commit(const Executable& e) {
  const StepProgram& p = e.program();
  for (const ProgramLeaf& leaf : p.leaves)
    if (leaf.exit) leaf.state->store(leaf.leaf, e.output(*leaf.exit));
  for (std::size_t i = 0; i < traces.size(); ++i)
    traces[i] = e.output(p.first_trace_out() + i);
  calls += 1;
  trace_steps += p.steps;
}

}  // namespace braintrace
