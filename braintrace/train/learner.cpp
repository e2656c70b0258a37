// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/learner.h"

#include <cmath>
#include <iostream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/run/thread_pool.h"
#include "braintrace/train/learner_impl.h"

namespace braintrace {

LearnerOptions compat(LearnerOptions base) {
  base.graph = compat(base.graph);
  base.learning = compat(base.learning);
  return base;
}

Learner::Learner(Module& model, const Algorithm& algorithm,
                 const std::vector<Array>& examples, const LearnerOptions& options)
    : impl_(std::make_unique<Impl>(model, checked(algorithm), options)) {
  BT_REQUIRE(!examples.empty(), "compile: at least one example input is needed");
  BT_REQUIRE(options.verbose >= 0 && options.verbose <= 2,
             fmt::format("compile: verbose must be 0, 1 or 2, got {}", options.verbose));
  check_threads(options.threads, "compile");
  BT_REQUIRE(!options.vmap || options.batch_size, "compile: vmap needs a batch_size");
  BT_REQUIRE_KIND(!options.vmap || options.learning.history == History::direct,
                  ErrorKind::not_supported,
                  "compile: history = deep needs windows, and there are none under vmap");
  impl_->compile(examples);
  if (options.verbose > 0)
    show_graph(options.verbose, options.out ? options.out : &std::cout);
}

Learner::~Learner() {
  if (use_) use_->end();
}
Learner::Learner(Learner&&) noexcept = default;

std::shared_ptr<ThreadPool> Learner::threads() const { return impl_->threads(); }

Value Learner::operator()(const Value& x) {
  const Values out = (*this)(Values{x});
  BT_REQUIRE(
      out.size() == 1,
      fmt::format("learner: the model has {} outputs; call it with a list", out.size()));
  return out[0];
}

Values Learner::operator()(const Values& xs) {
  const auto mine = claim("learner");
  if (impl_->tracer) return impl_->tracer->splice(xs);
  std::vector<Array> args;
  for (const Value& v : xs) args.push_back(v.array());
  const std::span<const Array> out = step(args);
  return {out.begin(), out.end()};
}

Values Learner::operator()(const MultiStepData& xs) {
  const auto mine = claim("learner");
  if (impl_->tracer) {
    BT_REQUIRE_KIND(impl_->tracing_window, ErrorKind::not_implemented,
                    "learner: MultiStepData under a gradient needs vjp_method multi-step "
                    "and a chunk_size");
    return impl_->tracer->splice(xs.values);
  }
  BT_REQUIRE(!options().vmap, "learner: windows are not available under vmap");
  std::vector<Array> args;
  for (const Value& v : xs.values) args.push_back(v.array());
  BT_REQUIRE(!args.empty() && !args[0].shape().empty(),
             "learner: MultiStepData needs a leading time axis");
  const std::int64_t steps = args[0].shape()[0];
  for (const Array& a : args)
    BT_REQUIRE(!a.shape().empty() && a.shape()[0] == steps,
               fmt::format("learner: MultiStepData of unequal lengths {} and {}", steps,
                           a.shape().empty() ? 0 : a.shape()[0]));
  const std::shared_ptr<Executable> e = impl_->evolve_program(args, steps);
  impl_->call(*e, args, {}, "learner");
  return {e->results().begin(), e->results().end()};
}

std::span<const Array> Learner::step(const std::vector<Array>& given) {
  const auto mine = claim("learner.step");
  const std::span<const Array> args = impl_->cast(given);
  const std::shared_ptr<Executable> e = impl_->evolve_program(args, 0);
  impl_->call(*e, args, {}, "learner.step");
  return e->results();
}

LossHandle Learner::trace_loss(const TracedFn& loss, const std::vector<Array>& examples) {
  const auto mine = claim("trace_loss");
  std::vector<Type> types;
  for (const Array& a : impl_->cast(examples)) types.push_back(type_of(a));
  return LossHandle(impl_->gradient_program(types, loss, {}, 0, "trace_loss"), use_);
}

void Learner::init_etrace_state() {
  const auto mine = claim("init_etrace_state");
  impl_->clear_traces();
}

void Learner::reset_state(std::optional<std::int64_t> batch_size) {
  const auto mine = claim("reset_state");
  if (batch_size) {
    BT_REQUIRE(options().batch_size,
               "reset_state: the learner was compiled without a batch_size");
    BT_REQUIRE(*batch_size >= 1,
               fmt::format("reset_state: batch_size must be >= 1, got {}", *batch_size));
    if (*batch_size != *options().batch_size) impl_->rebatch(*batch_size);
  }
  impl_->calls = impl_->trace_steps = 0;
  impl_->clear_traces();
}

std::int64_t Learner::running_index() const { return impl_->calls; }
std::int64_t Learner::trace_steps() const { return impl_->trace_steps; }
void Learner::set_counters(std::int64_t calls, std::int64_t trace_steps) {
  const auto mine = claim("set_counters");
  BT_REQUIRE(calls >= 0 && trace_steps >= 0,
             fmt::format("set_counters: counters must be >= 0, got {} and {}", calls,
                         trace_steps));
  impl_->calls = calls;
  impl_->trace_steps = trace_steps;
}

void Learner::set_rule_input(const std::string& name, const Array& value) {
  const auto mine = claim("set_rule_input");
  std::set<std::string> may, names;
  for (const RuleInput& in : impl_->rule->rule().optional_inputs()) may.insert(in.name);
  names = may;
  for (const RuleInput& in : impl_->rule->rule().inputs()) names.insert(in.name);
  BT_REQUIRE(
      names.contains(name),
      fmt::format("set_rule_input: {} has no input '{}'; {}", algorithm().name, name,
                  names.empty() ? "it has none"
                                : fmt::format("there are {}", fmt::join(names, ", "))));
  if (may.contains(name) && impl_->rule->given.insert(name).second)
    impl_->forget_programs();
  impl_->rule_inputs[name] = value.astype(impl_->rule->scalar_dtype()).contiguous();
}

void Learner::set_feedback(FeedbackMatrices matrices) {
  const auto mine = claim("set_feedback");
  BT_REQUIRE(algorithm().config.learning_signal() == LearningSignal::random_feedback,
             fmt::format(
                 "set_feedback: {} sends its signal through no matrix; rules with random "
                 "feedback do",
                 algorithm().name));
  std::set<std::int64_t> groups;
  for (const HiddenParamOpRelation& r : graph().hidden_param_op_relations)
    groups.insert(r.group_indices.begin(), r.group_indices.end());
  for (const auto& [group, matrix] : matrices)
    BT_REQUIRE(groups.contains(group),
               fmt::format("set_feedback: no group {} takes feedback; there are {}",
                           group, fmt::join(groups, ", ")));
  impl_->rule->feedback = std::move(matrices);
  impl_->forget_programs();
}

void Learner::set_synthesizer(SyntheticGradient synthesizer) {
  const auto mine = claim("set_synthesizer");
  BT_REQUIRE(algorithm().config.learning_signal() == LearningSignal::bootstrapped,
             fmt::format("set_synthesizer: {} predicts no future", algorithm().name));
  for (const HiddenGroup& g : graph().hidden_groups) {
    Shape want = g.varshape();
    want.push_back(g.num_state());
    const auto it = synthesizer.group_shapes().find(g.index);
    BT_REQUIRE(
        it != synthesizer.group_shapes().end() && it->second == want,
        fmt::format("set_synthesizer: group {} has shape {}, got {}", g.index,
                    to_string(want),
                    it == synthesizer.group_shapes().end() ? "no predictor"
                                                           : to_string(it->second)));
  }
  impl_->rule->synthesizer = std::move(synthesizer);
  impl_->forget_programs();
}

const ETraceGraph& Learner::graph() const { return impl_->rule->graph(); }
const Algorithm& Learner::algorithm() const { return impl_->algorithm; }
const LearnerOptions& Learner::options() const { return impl_->options; }
const CompiledRule& Learner::rule() const { return *impl_->rule; }
const StepProgram* Learner::last_program() const {
  return impl_->last ? &impl_->last->of_rule() : nullptr;
}

std::string Learner::last_plan() const {
  const auto mine = claim("last_plan");
  return impl_->last ? impl_->last->describe() : std::string();
}
Module& Learner::model() const { return impl_->model; }
CompilationReport Learner::report() const { return CompilationReport(graph()); }

std::string Learner::show_graph(int verbose, std::ostream* out) const {
  BT_REQUIRE(verbose >= 0 && verbose <= 2,
             fmt::format("show_graph: verbose must be 0, 1 or 2, got {}", verbose));
  std::string text = report().to_str(verbose);
  if (out) *out << text << '\n';
  return text;
}

Learner compile(Module& model, const Algorithm& algorithm,
                const std::vector<Array>& examples, const LearnerOptions& options) {
  return Learner(model, algorithm, examples, options);
}

Learner compile(Module& model, const Algorithm& algorithm, const Array& example,
                const LearnerOptions& options) {
  return Learner(model, algorithm, {example}, options);
}

}  // namespace braintrace
