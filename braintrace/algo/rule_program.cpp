// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/rule_program.h"

#include <fmt/format.h>

#include "braintrace/etrace/cut_set.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"

namespace braintrace {

CompiledRule::CompiledRule(std::shared_ptr<const ETraceGraph> graph,
                           const Algorithm& algorithm, const LearningOptions& options)
    : graph_(std::move(graph)),
      context_(std::make_unique<RuleContext>(*graph_, algorithm, options)),
      rule_(make_rule(*context_)),
      direct_(std::make_unique<DirectAdjoint>(*graph_, flow_options(graph_->options))),
      traces_(rule_->traces()) {
  if (options.history == History::deep) check_deep();
  if (has_while_terms(*context_)) while_terms_ = std::make_unique<WhileTerms>(*context_);
  std::set<ValueId> ids;
  for (const std::vector<ValueId>& more :
       {context_->reads(), rule_->reads(), direct_->reads(),
        while_terms_ ? while_terms_->reads() : std::vector<ValueId>{}})
    ids.insert(more.begin(), more.end());
  reads_.assign(ids.begin(), ids.end());
  for (const HiddenParamOpRelation& r : graph_->hidden_param_op_relations)
    for (const Trainable& t : r.trainables)
      for (const WeightVar& w : t.prologue.parameters)
        traced_leaves_.insert(leaf_name(w));
  if (algorithm.config.learning_signal() == LearningSignal::random_feedback)
    feedback = draw_feedback(*graph_, algorithm.options.random_feedback_key.value_or(0));
}

// Deep history sends credit back through whole steps instead of meeting traces there.
void CompiledRule::check_deep() const {
  const auto require = [&](bool holds, std::string_view rule) {
    BT_REQUIRE_KIND(holds, ErrorKind::not_supported,
                    fmt::format("{}: history = deep {}", algorithm().name, rule));
  };
  require(algorithm().config.learning_signal() == LearningSignal::symmetric,
          "needs the symmetric signal");
  require(!meets_at_entry(),
          "is for single-step rules; windows of a multi-step rule are exact inside");
  require(adds_history_only() && options().signal == SignalAdjoint::direct,
          "needs newest = exact and signal = direct");
  for (const LearningRule* part : rule_->parts())
    require(part->window_form() == WindowForm::credit && part->filter() == 0,
            "needs a rule whose credit travels back through D (D_RTRL, OSTLRecurrent, "
            "EProp without a filter)");
  require(!has_while(graph_->module_info.program()),
          "sends credit back through whole steps, and reverse mode cannot cross a while "
          "loop");
  for (const HiddenGroup& g : graph_->hidden_groups)
    require(!g.descent, fmt::format("does not reach into the opened loop of {}",
                                    to_string(g.members[0].path)));
}

DType CompiledRule::scalar_dtype() const {
  const ModuleInfo& info = graph_->module_info;
  for (const HiddenVar& h : info.hidden)
    if (is_float(info.program().type(h.in).dtype)) return info.program().type(h.in).dtype;
  return DType::f32;
}

bool CompiledRule::adds_history_only() const {
  const LearningSignal s = algorithm().config.learning_signal();
  const bool own_signal =
      s == LearningSignal::random_feedback || s == LearningSignal::modulatory;
  return !own_signal && options().newest == Newest::exact;
}

bool CompiledRule::meets_at_entry() const {
  return algorithm().vjp_method == VjpMethod::multi_step ||
         algorithm().engine == Engine::exact_rtrl;
}

bool CompiledRule::credits_old_states() const {
  return options().old_states == OldStates::credit && !meets_at_entry() &&
         algorithm().config.learning_signal() != LearningSignal::modulatory;
}

GroupSignals CompiledRule::signals(const StepTerms& t, const std::vector<Value>& adjoints,
                                   RuleMode mode) const {
  GroupSignals s = by_group(*graph_, adjoints);
  const LearningSignal kind = algorithm().config.learning_signal();
  if (kind == LearningSignal::modulatory) {
    const auto it = t.inputs.find(std::string(kModulator));
    BT_REQUIRE_KIND(it != t.inputs.end(), ErrorKind::runtime,
                    "ThreeFactor: no modulator was given for this step");
    return modulated(*graph_, it->second, s);
  }
  if (mode == RuleMode::single_step && options().signal == SignalAdjoint::direct)
    s = (*direct_)(t.values(), s);
  if (kind == LearningSignal::random_feedback) s = random_feedback(*graph_, feedback, s);
  return s;
}

RuleProgram CompiledRule::write(RuleMode mode,
                                const std::optional<Type>& given_modulator) const {
  RuleProgram p{.graph = {}, .mode = mode, .reads = reads_};
  const auto builder = Builder::create();
  const Graph& program = graph_->module_info.program();
  StepValues values;
  for (ValueId v : reads_) values.emplace(v, builder->input(program.type(v)));
  std::vector<Value> adjoints;
  if (mode != RuleMode::evolve)
    for (const HiddenVar& h : graph_->module_info.hidden)
      adjoints.push_back(builder->input(program.type(h.out)));
  std::vector<Value> eps;
  for (const TraceSlot& t : traces_) eps.push_back(builder->input(t.type));
  StepTerms terms(*context_, std::move(values));
  terms.calls = builder->input({scalar_dtype(), {}});
  terms.trace_steps = builder->input({scalar_dtype(), {}});
  p.inputs = inputs(mode, given_modulator);
  for (const RuleInput& in : p.inputs)
    terms.inputs.emplace(in.name, builder->input(in.type));

  LeafGradients grads;
  terms.at_entry = mode == RuleMode::entry;
  if (mode == RuleMode::entry) {
    grads = rule_->solve(terms, signals(terms, adjoints, mode), eps);
  } else if (mode == RuleMode::old_states) {
    StepTerms entry = terms.at_old_states();
    grads = rule_->solve(entry, signals(terms, adjoints, mode), eps);
  } else {
    const std::vector<Value> before = eps;
    eps = rule_->roll(terms, before);
    if (mode == RuleMode::single_step) {
      const GroupSignals s = signals(terms, adjoints, mode);
      grads = adds_history_only() ? rule_->history(terms, s, before, eps)
                                  : rule_->solve(terms, s, eps);
      if (adds_history_only() && while_terms_)
        add_to(grads, (*while_terms_)(terms, by_group(*graph_, adjoints)));
    }
  }
  p.num_adjoints = adjoints.size();
  p.num_traces = eps.size();
  std::vector<Value> outputs = eps;
  for (const auto& [leaf, g] : grads) {
    p.leaves.push_back(leaf);
    outputs.push_back(g);
  }
  p.graph = builder->finish(outputs);
  return p;
}

std::vector<RuleInput> CompiledRule::inputs(
    RuleMode mode, const std::optional<Type>& given_modulator) const {
  std::vector<RuleInput> out = rule_->inputs();
  for (const RuleInput& in : rule_->optional_inputs())
    if (given.contains(in.name)) out.push_back(in);
  const std::optional<Type>& m = given_modulator ? given_modulator : modulator;
  if (m && mode != RuleMode::evolve) out.push_back({std::string(kModulator), *m});
  return out;
}

bool CompiledRule::newest_by_reverse_mode(const std::string& leaf) const {
  if (traced_leaves_.contains(leaf)) return adds_history_only();
  return options().plain_params == PlainParams::newest_step;
}

bool CompiledRule::is_frozen(const std::string& leaf) const {
  for (const ParameterVerdict& v : graph_->verdicts) {
    if (v.verdict != Verdict::refused) continue;
    const std::string path = to_slashes(v.path);
    if (leaf == path || leaf.starts_with(path + "/")) return true;
  }
  return false;
}

}  // namespace braintrace
