// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/learning_rule.h"

#include <numeric>

#include <fmt/format.h>

#include "braintrace/algo/dense_rule.h"
#include "braintrace/algo/exact_rtrl_rule.h"
#include "braintrace/algo/io_rule.h"
#include "braintrace/algo/memory_plan.h"
#include "braintrace/algo/per_param_rule.h"
#include "braintrace/algo/uoro_rule.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

std::string TraceSlot::name() const {
  return fmt::format("{}/{}/{}{}{}", kind, relation, group, key.empty() ? "" : "/", key);
}

namespace {

Value entry_of(const Value& d, std::int64_t a, std::int64_t b) {
  return state_slice(squeeze(slice_axis(d, -2, a, 1), -2), b);
}

}  // namespace

// Few states per position: written out, so that it stays element by element.
Value times_blocks(const Value& d, const Value& v) {
  std::vector<Value> out;
  for (std::int64_t a = 0; a < v.dim(-1); ++a) {
    Value total = entry_of(d, a, 0) * state_slice(v, 0);
    for (std::int64_t b = 1; b < v.dim(-1); ++b)
      total = total + entry_of(d, a, b) * state_slice(v, b);
    out.push_back(total);
  }
  return stack(out, -1);
}

Value times_blocks_transposed(const Value& d, const Value& v) {
  std::vector<Value> out;
  for (std::int64_t b = 0; b < v.dim(-1); ++b) {
    Value total = entry_of(d, 0, b) * state_slice(v, 0);
    for (std::int64_t a = 1; a < v.dim(-1); ++a)
      total = total + entry_of(d, a, b) * state_slice(v, a);
    out.push_back(total);
  }
  return stack(out, -1);
}

Value blocks_times_blocks(const Value& x, const Value& y) {
  std::vector<Value> columns;
  for (std::int64_t b = 0; b < y.dim(-1); ++b)
    columns.push_back(times_blocks(x, state_slice(y, b)));
  return stack(columns, -1);
}

namespace {
[[noreturn]] void no_credit_form() {
  throw InternalError("LearningRule: a rule with the credit form must write it");
}
[[noreturn]] void no_factored_form() {
  throw InternalError("LearningRule: a rule with the factored form must write it");
}
}  // namespace

MetData LearningRule::met(StepTerms&, const GroupSignals&, const std::vector<Value>&,
                          OwnTerms) const {
  no_factored_form();
}
std::vector<Value> LearningRule::earned(StepTerms&, const std::vector<Value>&,
                                        const std::vector<Value>&) const {
  no_factored_form();
}
std::vector<Value> LearningRule::earned_before(StepTerms&, const std::vector<Value>&,
                                               const std::vector<Value>&) const {
  no_factored_form();
}

std::vector<Value> LearningRule::credit(StepTerms&, const GroupSignals&) const {
  no_credit_form();
}
LeafGradients LearningRule::pull_back(StepTerms&, const std::vector<Value>&) const {
  no_credit_form();
}
LeafGradients LearningRule::entry(StepTerms&, const GroupSignals&, const GroupSignals&,
                                  const std::vector<Value>&) const {
  no_credit_form();
}
std::vector<Value> LearningRule::moved(StepTerms&, const ToExit&,
                                       const std::vector<Value>&) const {
  no_credit_form();
}
std::vector<Value> LearningRule::arrived(StepTerms&, const ToExit&) const {
  no_credit_form();
}

CompositeRule::CompositeRule(const RuleContext& context,
                             std::vector<std::unique_ptr<LearningRule>> parts)
    : LearningRule(context), parts_(std::move(parts)) {
  for (const auto& p : parts_) counts_.push_back(p->traces().size());
}

std::vector<TraceSlot> CompositeRule::traces() const {
  std::vector<TraceSlot> out;
  for (const auto& p : parts_)
    for (TraceSlot& t : p->traces()) out.push_back(std::move(t));
  return out;
}

namespace {

// The stretch of `eps` that belongs to one part.
std::vector<Value> part_of(const std::vector<Value>& eps, std::size_t first,
                           std::size_t count) {
  const auto begin = eps.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

std::vector<Value> CompositeRule::roll(StepTerms& t,
                                       const std::vector<Value>& eps) const {
  std::vector<Value> out;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    for (const Value& v : parts_[i]->roll(t, part_of(eps, out.size(), counts_[i])))
      out.push_back(v);
  return out;
}

LeafGradients CompositeRule::solve(StepTerms& t, const GroupSignals& signals,
                                   std::vector<Value>& eps) const {
  LeafGradients out;
  std::size_t first = 0;
  for (std::size_t i = 0; i < parts_.size(); first += counts_[i++]) {
    std::vector<Value> mine = part_of(eps, first, counts_[i]);
    add_to(out, parts_[i]->solve(t, signals, mine));
    std::copy(mine.begin(), mine.end(), eps.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return out;
}

LeafGradients CompositeRule::history(StepTerms& t, const GroupSignals& signals,
                                     const std::vector<Value>& before,
                                     const std::vector<Value>& after) const {
  LeafGradients out;
  std::size_t first = 0;
  for (std::size_t i = 0; i < parts_.size(); first += counts_[i++])
    add_to(out, parts_[i]->history(t, signals, part_of(before, first, counts_[i]),
                                   part_of(after, first, counts_[i])));
  return out;
}

std::vector<const LearningRule*> CompositeRule::parts() const {
  std::vector<const LearningRule*> out;
  for (const auto& p : parts_)
    for (const LearningRule* inner : p->parts()) out.push_back(inner);
  return out;
}

std::vector<RuleInput> CompositeRule::inputs() const {
  std::vector<RuleInput> out;
  for (const auto& p : parts_)
    for (RuleInput& in : p->inputs()) out.push_back(std::move(in));
  return out;
}

std::vector<RuleInput> CompositeRule::optional_inputs() const {
  std::vector<RuleInput> out;
  for (const auto& p : parts_)
    for (RuleInput& in : p->optional_inputs()) out.push_back(std::move(in));
  return out;
}

std::vector<ValueId> CompositeRule::reads() const {
  std::vector<ValueId> out;
  for (const auto& p : parts_)
    for (ValueId v : p->reads()) out.push_back(v);
  return out;
}

namespace {

// Every relation with the rule that stores less for it.
std::vector<std::unique_ptr<LearningRule>> hybrid_parts(const RuleContext& context) {
  std::vector<std::size_t> entries, factors;
  for (std::size_t i = 0; i < context.relations().size(); ++i) {
    const HiddenParamOpRelation& r = context.relations()[i].relation();
    (stores_per_param(context.graph(), r) ? entries : factors).push_back(i);
  }
  std::vector<std::unique_ptr<LearningRule>> parts;
  if (!factors.empty()) parts.push_back(std::make_unique<IoRule>(context, factors));
  if (!entries.empty()) parts.push_back(std::make_unique<PerParamRule>(context, entries));
  return parts;
}

// SnAp: a trace entry that drives several positions has no neighbours to speak of.
void require_anchors(const RuleContext& context) {
  const bool sparse = context.config().recurrence_scope() == RecurrenceScope::sparse_n;
  if (!sparse && !context.algorithm().options.needs_anchors) return;
  for (const RelationWriter& r : context.relations())
    BT_REQUIRE_KIND(r.is_anchored(), ErrorKind::not_implemented,
                    fmt::format("{}: {} of {} has no single-position anchor",
                                context.algorithm().name, r.relation().primitive,
                                to_string(r.relation().path())));
}

}  // namespace

// Only a trace per weight entry can follow the sub-steps of an opened loop.
static void check_loops(const RuleContext& context) {
  if (!context.has_loops()) return;
  const bool fits = context.algorithm().engine == Engine::param_dim &&
                    context.config().recurrence_scope() == RecurrenceScope::diagonal;
  const bool traceless = context.algorithm().engine == Engine::bptt ||
                         context.algorithm().engine == Engine::exact_rtrl;
  const bool unknown = context.algorithm().engine == Engine::custom;
  BT_REQUIRE_KIND(
      fits || traceless || unknown, ErrorKind::not_implemented,
      fmt::format("{}: a weight inside a long scan needs a per-parameter rule "
                  "of diagonal scope (D_RTRL, EProp, ThreeFactor)",
                  context.algorithm().name));
}

std::unique_ptr<LearningRule> make_rule(const RuleContext& context) {
  check_loops(context);
  std::vector<std::size_t> all(context.relations().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::unique_ptr<LearningRule>> parts;
  switch (context.algorithm().engine) {
    case Engine::param_dim:
      require_anchors(context);
      parts.push_back(std::make_unique<PerParamRule>(context, all));
      break;
    case Engine::io_dim:
      parts.push_back(std::make_unique<IoRule>(context, all));
      break;
    case Engine::hybrid:
      parts = hybrid_parts(context);
      break;
    case Engine::random_projection:  // dense relations take part in the projection
      return std::make_unique<UoroRule>(context);
    case Engine::exact_rtrl:
      return std::make_unique<ExactRtrlRule>(context);
    case Engine::bptt:
      return std::make_unique<CompositeRule>(context, std::move(parts));
    case Engine::custom:
      parts.push_back((*context.algorithm().factory)(context));
      BT_REQUIRE(parts.back(), fmt::format("make_rule: the factory of {} made no rule",
                                           context.algorithm().name));
      break;
  }
  if (!context.dense_relations().empty())
    parts.push_back(std::make_unique<DenseRule>(context));
  return std::make_unique<CompositeRule>(context, std::move(parts));
}

}  // namespace braintrace
