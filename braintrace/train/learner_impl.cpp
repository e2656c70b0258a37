// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/learner_impl.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "braintrace/algo/graph_options.h"
#include "braintrace/algo/window_program.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/passes/count_loops.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

CompileOptions options_for(const Algorithm& a, const LearnerOptions& o) {
  CompileOptions g = graph_options(a, o.graph);
  g.batched = o.batch_size.has_value() && !o.vmap;
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

std::ptrdiff_t num_parts(const CompiledRule& rule, WindowForm form) {
  const auto parts = rule.rule().parts();
  return std::count_if(parts.begin(), parts.end(),
                       [&](const LearningRule* p) { return p->window_form() == form; });
}

// As many steps as keep what a window computes in the cache, but enough of them to make
// little of the weights, which are read and whose gradients are added to once per window.
std::int64_t steps_in_cache(double step_bytes, double weight_bytes) {
  constexpr double kCacheBytes = 24 << 20, kTimesWeights = 24, kFewSteps = 10,
                   kMany = 1e9;
  const double bytes = std::max(kCacheBytes, kTimesWeights * weight_bytes);
  return static_cast<std::int64_t>(std::clamp(bytes / step_bytes, kFewSteps, kMany));
}

double bytes_of_weights(const LossProgram& loss) {
  double bytes = 0;
  for (const ProgramLeaf& leaf : loss.leaves)
    if (leaf.parameter)
      bytes += static_cast<double>(leaf.state->stored(leaf.leaf).num_bytes());
  return bytes;
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
      compile_etrace_graph(model, examples, options_for(algorithm, options)));
  rule = std::make_unique<CompiledRule>(std::move(graph), algorithm, options.learning);
  const std::ptrdiff_t credit = num_parts(*rule, WindowForm::credit);
  const std::ptrdiff_t all = std::ssize(rule->rule().parts());
  may_drop_traces = credit > 0;
  may_begin_empty = credit == all;
  may_cut_windows = num_parts(*rule, WindowForm::factored) == all &&
                    options.learning.history == History::direct;
  check_relations();
  packing = TracePacking::compact(*rule, lanes(), options.compact_bytes);
  if (options.vmap) {
    init.batch_size = options.batch_size;
    init.seed.reset();  // the parameters stay
    init_all_states(model, init);
  }
  forget_programs();
  traces.clear(), spare.clear();
  clear_traces();
}

void Learner::Impl::check_relations() const {
  const bool traceless =
      algorithm.engine == Engine::bptt || algorithm.engine == Engine::exact_rtrl;
  BT_REQUIRE_KIND(traceless || !rule->graph().hidden_param_op_relations.empty(),
                  ErrorKind::compilation,
                  fmt::format("compile: {} found no trainable op that reaches a hidden "
                              "state; there is nothing to trace. BPTT and ExactRTRL "
                              "train the rest, such as the readout of a reservoir",
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
  std::set<std::string> given = rule->given;
  compile(args);
  rule->given = std::move(given);
  rule->modulator = modulator;
  rule->feedback = std::move(feedback);
}

void Learner::Impl::forget_programs() {
  programs.clear(), known.clear();
  step_plans.clear(), modulated_plans.clear(), update_plans.clear();
  ++epoch;
  last = nullptr;
}

std::span<const Array> Learner::Impl::cast(const std::vector<Array>& args) {
  DType dtype = rule->scalar_dtype();
  for (const Array& e : examples)
    if (is_float(e.dtype())) dtype = e.dtype();
  const auto fits = [&](const Array& a) {
    return !is_float(a.dtype()) || a.dtype() == dtype;
  };
  if (std::all_of(args.begin(), args.end(), fits)) return args;
  cast_args.clear();
  for (const Array& a : args) cast_args.push_back(fits(a) ? a : a.astype(dtype));
  return cast_args;
}

LossProgram Learner::Impl::trace(const std::vector<Type>& args, const TracedFn& fn,
                                 const SpliceOptions& splice, std::string_view caller) {
  BT_REQUIRE(!tracer, fmt::format("{}: called inside a loss function", caller));
  LossTracer local(rule->graph(), rule->reads(), splice);
  struct Active {
    Impl& impl;
    Active(Impl& i, LossTracer* t, bool window) : impl(i) {
      impl.tracer = t;
      impl.tracing_window = window;
    }
    ~Active() { impl.tracer = nullptr; }
  };
  const Active active(*this, &local, splice.window);
  LossProgram p = local.run(args, fn, caller);
  // Those of the step are counted. What the function does around it may loop, too.
  if (options.graph.counted_loops == CountedLoops::scan && has_while(p.graph))
    p.graph = count_loops(p.graph);
  return p;
}

const std::shared_ptr<ThreadPool>& Learner::Impl::threads() {
  if (!pool) pool = make_pool(options.threads);
  return pool;
}

GradientPasses& Learner::Impl::passes() {
  if (!gradient_passes)
    gradient_passes.emplace(options.executor == ExecutorKind::plan ? threads() : nullptr);
  return *gradient_passes;
}

std::shared_ptr<Executable> Learner::Impl::cached(
    std::uint64_t key, const std::function<StepProgram()>& make) {
  std::shared_ptr<Executable>& e = programs[key];
  if (!e)
    e = std::make_shared<Executable>(
        make(), packing, options.executor,
        options.executor == ExecutorKind::plan ? threads() : nullptr, options.profile);
  known.insert(e.get());
  return e;
}

namespace {

std::uint64_t mixed(std::uint64_t key, std::initializer_list<std::uint64_t> parts) {
  for (std::uint64_t part : parts) key = key * 1099511628211ULL + part + 1;
  return key;
}

// Which states the inputs are, and what else will be given, is no part of the graph.
std::uint64_t key_of(const CompiledRule& rule, const LossProgram& loss,
                     const std::vector<std::string>& weights) {
  std::uint64_t key =
      mixed(structural_hash(loss.graph),
            {loss.has_loss, loss.num_results, loss.num_args, loss.leaves.size(),
             loss.new_states.size(), loss.modulator.has_value()});
  for (const ProgramLeaf& leaf : loss.leaves)
    key = mixed(key, {std::hash<const State*>{}(leaf.state), leaf.leaf,
                      std::hash<std::string>{}(leaf.name), leaf.parameter,
                      leaf.exit ? *leaf.exit + 1 : 0});
  for (const std::string& w : weights) key = mixed(key, {std::hash<std::string>{}(w)});
  if (rule.modulator)
    key = mixed(key, {std::hash<std::string>{}(to_string(*rule.modulator))});
  return key;
}

}  // namespace

std::shared_ptr<Executable> Learner::Impl::traced(const std::vector<Type>& args,
                                                  const TracedFn& fn,
                                                  const StepRequest& request,
                                                  std::string_view caller) {
  const LossProgram loss = trace(args, fn, splice_options(*rule, request), caller);
  const std::uint64_t key =
      mixed(key_of(*rule, loss, request.weights),
            {request.gradient, static_cast<std::uint64_t>(request.window)});
  return cached(key, [&] { return assemble(*rule, loss, request); });
}

Learner::Impl::TracedLoss Learner::Impl::traced_loss(
    const std::vector<Type>& args, const TracedFn& fn,
    const std::vector<std::string>& weights, std::string_view caller) {
  const StepRequest request{.gradient = true, .lanes = lanes()};
  TracedLoss t{trace(args, fn, splice_options(*rule, request), caller)};
  t.key = key_of(*rule, t.program, weights);
  t.step_bytes = bytes_per_step(t.program);
  t.weight_bytes = bytes_of_weights(t.program);
  return t;
}

std::shared_ptr<Executable> Learner::Impl::window_program(
    const TracedLoss& loss, const std::vector<std::string>& weights,
    const WindowOptions& window) {
  std::int64_t steps = window.steps;
  const bool multi = rule->meets_at_entry();
  if (steps == 0) {
    const double fit = static_cast<double>(window.bytes) / (2 * loss.step_bytes);
    const auto most = static_cast<std::int64_t>(std::min(fit, 64.0));
    // A window is part of what multi-step rules estimate: it stays the longest.
    steps = is_bptt() ? window.length : steps_per_window(window.length, most, !multi);
  }
  if (const std::int64_t most = steps_in_cache(loss.step_bytes, loss.weight_bytes);
      may_cut_windows && !multi && steps > most)
    steps = steps_per_window(window.length, most);
  BT_INVARIANT(multi || (window.gradient && !window.signals));
  // Where history goes on a program of its own would run once.
  const bool fresh = !multi && may_begin_empty && traces_are_zero &&
                     (!window.carry || steps == window.length);
  const bool carry = multi || window.carry || steps < window.length || !may_drop_traces;
  const std::uint64_t key = mixed(loss.key, {7, static_cast<std::uint64_t>(steps), carry,
                                             fresh, window.gradient, window.signals});
  // Found without allocating; an entry whose program failed to compile is empty.
  if (const auto it = programs.find(key); it != programs.end() && it->second)
    return it->second;
  return cached(key, [&] {
    if (multi)
      return assemble(*rule, windowed(loss.program, steps),
                      {.gradient = window.gradient,
                       .weights = weights,
                       .lanes = lanes(),
                       .window = steps,
                       .signals = window.signals});
    return assemble_window(
        *rule, loss.program,
        {.steps = steps, .weights = weights, .carry = carry, .fresh = fresh});
  });
}

std::shared_ptr<Executable> Learner::Impl::evolve_program(std::span<const Array> args,
                                                          std::int64_t window) {
  const auto fits = [&](const StepPlan& s) {
    return s.window == window &&
           std::equal(args.begin(), args.end(), s.types.begin(), s.types.end(),
                      [](const Array& a, const Type& t) {
                        return a.dtype() == t.dtype && a.shape() == t.shape;
                      });
  };
  for (const StepPlan& s : step_plans)
    if (fits(s)) return s.executable;
  std::vector<Type> types;
  for (const Array& a : args) types.push_back(type_of(a));
  StepRequest request{.gradient = false, .lanes = lanes(), .window = window};
  const auto fn = [this](const Values& in) {
    return LossResult{.loss = {}, .results = tracer->splice(in)};
  };
  step_plans.push_back({types, window, traced(types, fn, request, "learner")});
  return step_plans.back().executable;
}

std::shared_ptr<Executable> Learner::Impl::gradient_program(
    const std::vector<Type>& args, const TracedFn& fn,
    const std::vector<std::string>& weights, std::int64_t window,
    std::string_view caller) {
  StepRequest request{
      .gradient = true, .weights = weights, .lanes = lanes(), .window = window};
  return traced(args, fn, request, caller);
}

}  // namespace braintrace
