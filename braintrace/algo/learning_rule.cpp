// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/learning_rule.h"

#include <numeric>

#include <fmt/format.h>

#include "braintrace/algo/per_param_rule.h"

namespace braintrace {

std::string TraceSlot::name() const {
  return fmt::format("{}/{}/{}{}{}", kind, relation, group, key.empty() ? "" : "/", key);
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

std::vector<RuleInput> CompositeRule::inputs() const {
  std::vector<RuleInput> out;
  for (const auto& p : parts_)
    for (RuleInput& in : p->inputs()) out.push_back(std::move(in));
  return out;
}

std::vector<ValueId> CompositeRule::reads() const {
  std::vector<ValueId> out;
  for (const auto& p : parts_)
    for (ValueId v : p->reads()) out.push_back(v);
  return out;
}

std::unique_ptr<LearningRule> make_rule(const RuleContext& context) {
  std::vector<std::size_t> all(context.relations().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::unique_ptr<LearningRule>> parts;
  switch (context.algorithm().engine) {
    case Engine::param_dim:
      parts.push_back(std::make_unique<PerParamRule>(context, all));
      break;
    case Engine::bptt:
      break;
    default:
      throw UserError(
          ErrorKind::not_implemented,
          fmt::format("make_rule: {} is not available", context.algorithm().name));
  }
  return std::make_unique<CompositeRule>(context, std::move(parts));
}

}  // namespace braintrace
