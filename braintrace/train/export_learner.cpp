// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/export_learner.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/passes/if_convert.h"
#include "braintrace/passes/pipeline.h"
#include "braintrace/train/optimizer_program.h"
#include "braintrace/train/update_program.h"

namespace braintrace {
namespace {

using Role = ExportPort::Role;

// Loops up to this length are written out.
constexpr std::int64_t kMaxUnrolled = 64;

std::string name_at(const std::vector<std::string>& names, std::size_t i,
                    std::string otherwise) {
  return i < names.size() ? names[i] : std::move(otherwise);
}

bool among(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void require_rate(const LearnerExport& o) {
  BT_REQUIRE(o.learning_rate >= 0 && std::isfinite(o.learning_rate),
             fmt::format("export_learner: learning_rate must be >= 0 and finite, got {}",
                         o.learning_rate));
  BT_REQUIRE(
      !o.optimizer || o.learning_rate == 0,
      fmt::format("export_learner: the optimiser has its own learning rate {}, got "
                  "learning_rate {} beside it",
                  learning_rate(*o.optimizer), o.learning_rate));
}

void require_fields(const char* what, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    BT_REQUIRE(
        is_field_name(name),
        fmt::format("export_learner: {} must be identifiers and no words of C, C++ "
                    "or the header, got '{}'",
                    what, name));
    for (const char* own : {"loss", "loss_weight", "calls", "trace_steps", "updates"})
      BT_REQUIRE(name != own,
                 fmt::format("export_learner: '{}' among the {} is a field that every "
                             "header has",
                             name, what));
  }
}

// Arguments are named all or none; results from the first on.
void require_names(const LearnerExport& o, const StepProgram& p) {
  require_fields("arguments", o.arguments);
  require_fields("results", o.results);
  BT_REQUIRE(o.arguments.empty() || o.arguments.size() == p.num_args,
             fmt::format("export_learner: the loss takes {} arguments, got {} names",
                         p.num_args, o.arguments.size()));
  BT_REQUIRE(
      o.results.size() <= p.num_results,
      fmt::format("export_learner: the loss gives {} results besides, got {} names",
                  p.num_results, o.results.size()));
  for (const std::string& name : o.results)
    BT_REQUIRE(!among(o.arguments, name),
               fmt::format("export_learner: '{}' is an argument and a result", name));
}

class Exporter {
 public:
  Exporter(const Learner& learner, const StepProgram& p, const LearnerExport& options)
      : learner_(learner), program_(p), options_(options) {
    spec_.name = options.name;
    spec_.learning_rate =
        options.optimizer ? learning_rate(*options.optimizer) : options.learning_rate;
  }

  std::string run() {
    const std::shared_ptr<Builder> b = Builder::create();
    Values in;
    for (const Type& t : program_.graph.input_types()) in.push_back(b->input(t));
    name_inputs();
    Values out = inline_graph(program_.graph, in);
    name_outputs();
    // The counters move on as the learner's do.
    const std::size_t calls = program_.first_trace() + program_.num_traces;
    out.push_back(in[calls] + static_cast<double>(program_.calls));
    out.push_back(in[calls + 1] + static_cast<double>(program_.steps));
    for (const char* name : {"calls", "trace_steps"})
      spec_.outputs.push_back({name, Role::state});
    if (options_.optimizer) optimize(*b, in, out);
    PassRunner passes;
    const Graph g =
        lower(b->finish(out),
              {.if_convert = true, .unroll = {.max_length = kMaxUnrolled}}, passes);
    return export_header(g, spec_, options_.language);
  }

 private:
  // Steps of the optimiser in place of the gradients; its moments and its count of
  // updates are states. A step whose loss has no weight leaves all of them alone.
  void optimize(Builder& b, const Values& in, Values& out) {
    const UpdateRule& rule = *options_.optimizer;
    const Value weight = sum(in.back());
    const Value counts = not_equal(weight, 0);
    const Value before = b.input({weight.dtype(), {}});
    spec_.inputs.push_back({"updates", Role::state, zeros({}, weight.dtype())});
    const Value count = before + astype(counts, weight.dtype());
    spec_.outputs.push_back({"updates", Role::state});
    const std::size_t first = program_.first_gradient();
    std::vector<Value> more = {count};
    for (std::size_t i = 0; i < program_.gradients.size(); ++i) {
      const std::string& leaf = program_.gradients[i];
      Value& gradient = out[first + i];
      std::map<std::string, Value> moments;
      for (const std::string& name : moment_names(rule)) {
        moments.emplace(name, b.input(gradient.type()));
        spec_.inputs.push_back({name + "/" + leaf, Role::state});
      }
      const OptimizerStep s =
          optimizer_step(rule, in[program_.num_args + leaf_of(program_, leaf)], gradient,
                         astype(count, gradient.dtype()), moments);
      for (const auto& [name, value] : s.moments) {
        more.push_back(select(counts, value, moments.at(name)));
        spec_.outputs.push_back({name + "/" + leaf, Role::state});
      }
      gradient = select(counts, s.step, zeros_like(s.step));
    }
    out.insert(out.end(), more.begin(), more.end());
  }

  void name_inputs() {
    const std::vector<Type> types = program_.graph.input_types();
    for (std::size_t i = 0; i < program_.num_args; ++i)
      spec_.inputs.push_back({name_at(options_.arguments, i,
                                      i == 0   ? "x"
                                      : i == 1 ? "target"
                                               : fmt::format("a{}", i)),
                              Role::argument});
    for (const ProgramLeaf& leaf : program_.leaves)
      spec_.inputs.push_back({leaf.name, leaf.parameter ? Role::parameter : Role::state,
                              leaf.state->stored(leaf.leaf)});
    for (const TraceView& t : learner_.etraces())
      spec_.inputs.push_back({"trace/" + t.slot.name(), Role::trace, t.value});
    const std::int64_t counts[] = {learner_.running_index(), learner_.trace_steps()};
    for (std::size_t i = 0; i < 2; ++i)
      spec_.inputs.push_back(
          {i == 0 ? "calls" : "trace_steps", Role::state,
           scalar(static_cast<double>(counts[i]), types[spec_.inputs.size()].dtype)});
    for (const RuleInput& r : program_.inputs)
      spec_.inputs.push_back({r.name, Role::argument});
    const Type& weight = types[spec_.inputs.size()];
    spec_.inputs.push_back(
        {"loss_weight", Role::state, full(weight.shape, 1, weight.dtype)});
    BT_INVARIANT(spec_.inputs.size() == types.size());
  }

  void name_outputs() {
    spec_.outputs.push_back({"loss", Role::loss});
    const char* first = among(options_.arguments, "y") ? "r0" : "y";
    for (std::size_t i = 0; i < program_.num_results; ++i)
      spec_.outputs.push_back(
          {name_at(options_.results, i, i == 0 ? first : fmt::format("r{}", i)),
           Role::output});
    std::vector<ExportPort> exits(program_.first_trace_out() - spec_.outputs.size());
    for (const ProgramLeaf& leaf : program_.leaves)
      if (leaf.exit)
        exits.at(*leaf.exit - spec_.outputs.size()) = {
            leaf.name, leaf.parameter ? Role::parameter : Role::state};
    spec_.outputs.insert(spec_.outputs.end(), exits.begin(), exits.end());
    for (const TraceView& t : learner_.etraces())
      spec_.outputs.push_back({"trace/" + t.slot.name(), Role::trace});
    for (const std::string& leaf : program_.gradients)
      spec_.outputs.push_back({leaf, Role::gradient});
  }

  const Learner& learner_;
  const StepProgram& program_;
  const LearnerExport& options_;
  ExportSpec spec_;
};

}  // namespace

std::string export_learner(Learner& learner, const TracedFn& loss,
                           const std::vector<Array>& examples,
                           const LearnerExport& options) {
  BT_REQUIRE_KIND(learner.algorithm().engine != Engine::bptt, ErrorKind::not_supported,
                  "export_learner: BPTT needs whole sequences; choose an online rule");
  require_rate(options);
  const LossHandle handle = learner.trace_loss(loss, examples);
  require_names(options, handle.program());
  return Exporter(learner, handle.program(), options).run();
}

}  // namespace braintrace
