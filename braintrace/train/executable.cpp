// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/executable.h"

#include <fmt/format.h>

#include "braintrace/ir/print.h"
#include "braintrace/passes/pipeline.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/run/plan.h"

namespace braintrace {
namespace {

// Traces and parameters are the big arrays: they move in place, unless a run can still
// fail half way (an index out of its range).
PlanOptions plan_options(const StepProgram& p) {
  PlanOptions o;
  const std::vector<Type> types = p.graph.input_types();
  for (std::size_t i = 0; i < p.num_args; ++i)
    if (!is_float(types[i].dtype)) return o;
  for (std::size_t i = 0; i < std::min(p.num_traces, p.num_traces_out); ++i)
    o.in_place.emplace_back(p.first_trace() + i, p.first_trace_out() + i);
  for (std::size_t k = 0; k < p.leaves.size(); ++k)
    if (p.leaves[k].parameter && p.leaves[k].exit)
      o.in_place.emplace_back(p.first_leaf() + k, *p.leaves[k].exit);
  for (std::size_t i = 0; i < p.num_moments.value_or(0); ++i)
    o.in_place.emplace_back(p.first_moment() + i, p.first_moment_out() + i);
  return o;
}

}  // namespace

struct Executable::Engine {
  std::optional<Plan> plan;
};

Executable::Executable(StepProgram program, const TracePacking& packing,
                       ExecutorKind kind, std::shared_ptr<ThreadPool> pool, bool profile)
    : program_(std::move(program)),
      kind_(kind),
      pool_(std::move(pool)),
      profile_(profile),
      engine_(std::make_unique<Engine>()) {
  if (!packing.is_plain()) {
    of_rule_ = std::move(program_);
    program_ = packing.packed(*of_rule_);
  }
  plan();
}

void Executable::plan() {
  if (kind_ == ExecutorKind::interpreter) {
    program_.graph = optimize(program_.graph);
    return;
  }
  PlanOptions o = plan_options(program_);
  o.pool = pool_;
  o.profile = profile_;
  in_place_ = !o.in_place.empty();
  engine_->plan.emplace(program_.graph, o);
}

void Executable::repack(const TracePacking& packing) {
  if (lent_) lend();
  StepProgram rule = of_rule();
  program_ = packing.packed(rule);
  of_rule_ = std::move(rule);
  inputs.clear(), own.clear(), outputs.clear();
  gradients_.clear(), places_.clear();
  plan();
}

Executable::~Executable() = default;

void Executable::check(std::string_view caller) const {
  const auto ids = program_.graph.inputs();
  BT_INVARIANT(inputs.size() == ids.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Type& want = program_.graph.type(ids[i]);
    const Array& got = *inputs[i];
    BT_REQUIRE(got.dtype() == want.dtype && got.shape() == want.shape,
               fmt::format("{}: {} must be {}, got {}", caller, input_name(program_, i),
                           to_string(want), to_string(type_of(got))));
  }
}

bool Executable::moved(std::size_t output) const {
  return engine_->plan && engine_->plan->moved(output);
}

void Executable::run() {
  if (lent_) lend();  // outputs take their memory back
  if (engine_->plan) {
    engine_->plan->run_at(inputs, outputs);
    return;
  }
  std::vector<Array> copies;
  for (const Array* a : inputs) copies.push_back(*a);
  outputs = interpret(program_.graph, copies);
}

double Executable::loss() const {
  if (!program_.has_loss) return 0;
  const Array& a = outputs[0];
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.at(i);
  return sum;
}

std::span<const Array> Executable::results() const {
  return std::span(outputs).subspan(program_.has_loss ? 1 : 0, program_.num_results);
}

std::string Executable::describe() const {
  return engine_->plan ? engine_->plan->describe() : print(program_.graph);
}

// Moves the gradients from the outputs to their names, or back.
void Executable::lend() {
  const std::size_t first = program_.first_gradient();
  for (std::size_t i = 0; i < program_.gradients.size(); ++i)
    swap(*places_[i], outputs[first + i]);
  lent_ = !lent_;
}

std::span<Array> Executable::entry_signals() {
  return std::span(outputs).subspan(program_.first_moment_out() - program_.num_signals,
                                    program_.num_signals);
}

StateDict& Executable::gradients() {
  if (places_.empty())
    for (const std::string& leaf : program_.gradients)
      places_.push_back(&gradients_[leaf]);
  if (!lent_) lend();
  return gradients_;
}

}  // namespace braintrace
