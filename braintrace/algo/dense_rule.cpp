// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/dense_rule.h"

#include <algorithm>
#include <map>
#include <set>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/axis.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/transforms/lanes.h"

namespace braintrace {
namespace {

constexpr std::int64_t kSmallShare = 8;

// D (*V, S, S) times E (*V, S, *leaf), position by position.
Value by_position(const Value& d, const Value& eps) {
  const std::int64_t v = d.rank() - 2;
  if (d.dim(v) == 1) {
    Shape stretched(static_cast<std::size_t>(eps.rank()), 1);
    std::copy_n(d.shape().begin(), v, stretched.begin());
    return eps * reshape(d, stretched);
  }
  return dot_general(d, eps,
                     {.lhs_contract = {v + 1},
                      .rhs_contract = {v},
                      .lhs_batch = iota_ints(v),
                      .rhs_batch = iota_ints(v)});
}

// (*group, *leaf) -> (leaf entries, *group), and back.
Value leaf_in_front(const Value& eps, const Shape& group) {
  const auto n = static_cast<std::int64_t>(group.size());
  Ints order = iota_ints(n);
  order.insert(order.begin(), n);
  return transpose(reshape(eps, inserted(group, n, -1)), order);
}
Value leaf_behind(const Value& lanes, const Shape& shape) {
  Ints order = iota_ints(lanes.rank());
  std::rotate(order.begin(), order.begin() + 1, order.end());
  return reshape(transpose(lanes, order), shape);
}

}  // namespace

DenseRule::DenseRule(const RuleContext& context)
    : LearningRule(context), kappa_(context.config().kappa().value_or(0)) {
  const Graph& program = context.graph().module_info.program();
  const auto& relations = context.dense_relations();
  const bool batched = context.graph().options.batched &&
                       context.options().prologue == PrologueRule::pull_back;
  for (std::size_t r = 0; r < relations.size(); ++r) {
    const HiddenGroup& g = relations[r].group();
    const bool apart =
        batched && g.varshape()[0] > 1 && relations[r].keeps_samples_apart();
    for (const WeightVar& w : relations[r].leaves()) {
      Type t = program.type(w.id);
      if (!is_float(t.dtype)) continue;
      t.shape = joined({g.varshape(), {g.num_state()}, t.shape});
      entries_.push_back({r, w, t, apart});
    }
  }
  join_tails();
  plan_sweeps();
}

const RelationWriter& DenseRule::writer(const Entry& e) const {
  return context().dense_relations()[e.relation];
}

std::vector<TraceSlot> DenseRule::traces() const {
  std::vector<TraceSlot> out;
  for (const bool filter : {false, true}) {
    if (filter && !filtered()) break;
    for (const Entry& e : entries_) {
      TraceSlot t{.kind = filter ? "dense_filtered" : "dense",
                  .key = leaf_name(e.leaf),
                  .relation = static_cast<std::int64_t>(writer(e).index()),
                  .group = writer(e).group().index,
                  .type = e.type,
                  .parameter = e.leaf.path};
      t.type.dtype = context().algorithm().options.trace_dtype.value_or(t.type.dtype);
      out.push_back(std::move(t));
    }
  }
  return out;
}

std::vector<ValueId> DenseRule::reads() const {
  std::set<ValueId> ids;
  for (const RelationWriter& r : context().dense_relations()) {
    const std::vector<ValueId> more = r.reads();
    ids.insert(more.begin(), more.end());
  }
  return {ids.begin(), ids.end()};
}

Value DenseRule::stored(const Value& eps) const {
  const auto dtype = context().algorithm().options.trace_dtype;
  return dtype ? astype(eps, *dtype) : eps;
}

Value DenseRule::loaded(const Value& eps, const Entry& e) {
  return eps.dtype() == e.type.dtype ? eps : astype(eps, e.type.dtype);
}

Values DenseRule::inputs_of(const StepTerms& t, const Entry& e) const {
  Values in;
  for (ValueId v : writer(e).reads()) in.push_back(t.values().at(v));
  in.push_back(t.values().at(e.leaf.id));
  return in;
}

std::optional<Value> DenseRule::carried(StepTerms& t, const Entry& e,
                                        const Value& stored_eps) const {
  const ETraceConfig& config = context().config();
  const HiddenGroup& g = writer(e).group();
  const Value eps = loaded(stored_eps, e);
  const TemporalRecursion recursion = context().recursion();
  if (recursion == TemporalRecursion::none) return std::nullopt;
  if (recursion == TemporalRecursion::scalar_leak) return eps * *config.decay().f;
  if (!g.has_recurrence) return std::nullopt;
  if (g.descent) return by_position(t.loop_D(g.index), eps);
  if (config.recurrence_scope() != RecurrenceScope::sparse_n)
    return by_position(*t.D(g.index), eps);
  const Shape group = joined({g.varshape(), {g.num_state()}});
  const Values next = on_lanes({leaf_in_front(eps, group)}, [&](const Values& one) {
    return Values{t.times_jacobian(g.index, one[0])};
  });
  return leaf_behind(next[0], eps.shape());
}

std::vector<Value> DenseRule::roll(StepTerms& t, const std::vector<Value>& eps) const {
  const bool every_step = context().options().kappa_advance == KappaAdvance::every_step;
  std::vector<Value> out = eps;
  const std::vector<Value> now = instants(t);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    Value next = now[i];
    if (const auto past = carried(t, e, eps[i])) next = next + *past;
    out[i] = stored(next);
    if (!filtered() || !every_step) continue;
    const std::size_t f = entries_.size() + i;
    out[f] = stored(loaded(eps[f], e) * kappa_ + next);
  }
  return out;
}

std::optional<Value> DenseRule::led_back(StepTerms& t, const Entry& e,
                                         const Value& s) const {
  const ETraceConfig& config = context().config();
  const HiddenGroup& g = writer(e).group();
  const TemporalRecursion recursion = context().recursion();
  if (recursion == TemporalRecursion::scalar_leak) return s * *config.decay().f;
  if (recursion == TemporalRecursion::none || !g.has_recurrence ||
      config.recurrence_scope() == RecurrenceScope::sparse_n)
    return std::nullopt;
  return times_blocks_transposed(g.descent ? t.loop_D(g.index) : *t.D(g.index), s);
}

// Rows of E are multiplied where they lie: the step does it anyway, and the signal meets
// them in the same pass.
bool DenseRule::moves_in_passing(const Entry& e) const {
  const HiddenGroup& g = writer(e).group();
  return g.num_state() == 1 && e.type.rank() > std::ssize(g.varshape()) + 2;
}

const Value& DenseRule::own(const GroupSignals& signals, const Entry& e) const {
  return signals[static_cast<std::size_t>(writer(e).group().index)];
}

void DenseRule::contract(LeafGradients& out, const Value& s, const Entry& e,
                         const Value& eps) {
  add_to(out, leaf_name(e.leaf), contracted_first(eps, s));
}

LeafGradients DenseRule::solve(StepTerms& t, const GroupSignals& signals,
                               std::vector<Value>& eps) const {
  const bool on_gradient = context().options().kappa_advance == KappaAdvance::on_gradient;
  const std::size_t first = filtered() ? entries_.size() : 0;
  LeafGradients out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    if (filtered() && on_gradient && t.moves_filters)
      eps[first + i] = stored(loaded(eps[first + i], e) * kappa_ + loaded(eps[i], e));
    contract(out, own(signals, e), e, loaded(eps[first + i], e));
  }
  return out;
}

LeafGradients DenseRule::history(StepTerms& t, const GroupSignals& signals,
                                 const std::vector<Value>& before,
                                 const std::vector<Value>&) const {
  LeafGradients out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    const Value& s = own(signals, e);
    const auto led = moves_in_passing(e) ? std::nullopt : led_back(t, e, s);
    if (led)
      contract(out, *led, e, loaded(before[i], e));
    else if (const auto past = carried(t, e, before[i]))
      contract(out, s, e, *past);
    if (filtered()) contract(out, s * kappa_, e, loaded(before[entries_.size() + i], e));
  }
  return out;
}

// ---- windows --------------------------------------------------------------------------

WindowForm DenseRule::window_form() const {
  const ETraceConfig& c = context().config();
  const bool io = c.trace_factorization() == TraceFactorization::io_factorized;
  const bool own_leak = io && context().recursion() == TemporalRecursion::scalar_leak;
  const bool whole = c.recurrence_scope() == RecurrenceScope::sparse_n;
  const bool loops = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return writer(e).group().descent != nullptr;
  });
  return own_leak || whole || loops ? WindowForm::per_step : WindowForm::credit;
}

bool DenseRule::rolls_to_exit() const {
  std::map<std::size_t, std::int64_t> between;  // by relation
  std::int64_t traces = 0;
  for (const Entry& e : entries_) {
    const HiddenGroup& g = writer(e).group();
    between[e.relation] = writer(e).y_type().size() * num_elements(g.varshape()) *
                          g.num_state() / (e.apart ? g.varshape()[0] : 1);
    traces += e.type.size();
  }
  std::int64_t total = 0;
  for (const auto& [relation, size] : between) total += size;
  return kSmallShare * total > traces;
}

std::vector<Value> DenseRule::moved(StepTerms&, const ToExit& m,
                                    const std::vector<Value>& before) const {
  std::vector<Value> out = before;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    const auto g = static_cast<std::size_t>(writer(e).group().index);
    const Value eps = loaded(before[i], e);
    out[i] = m.plain[g] ? by_position(*m.plain[g], eps) : zeros_like(eps);
    if (!filtered()) continue;
    const std::size_t f = entries_.size() + i;
    const Value kept = loaded(before[f], e) * m.kept;
    out[f] = m.filtered[g] ? kept + by_position(*m.filtered[g], eps) : kept;
  }
  return out;
}

std::vector<Value> DenseRule::arrived(StepTerms& t, const ToExit& m) const {
  std::vector<Value> out = instants(t, &m.plain);
  if (!filtered()) return out;
  const std::vector<Value> more = instants(t, &m.filtered);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::vector<Value> DenseRule::credit(StepTerms& t, const GroupSignals& r) const {
  std::map<std::size_t, LeafGradients> joint;  // by relation
  for (const Joint& j : joint_) {
    const HiddenGroup& g = context().dense_relations()[j.relations[0]].group();
    const Values cts =
        j.tail.back_to_ys(t.values(), r[static_cast<std::size_t>(g.index)]);
    for (std::size_t k = 0; k < cts.size(); ++k) {
      const RelationWriter& w = context().dense_relations()[j.relations[k]];
      joint[j.relations[k]] = w.back_to_leaves(t.values(), cts[k]);
    }
  }
  std::vector<Value> out;
  for (const Entry& e : entries_) {
    if (const auto own = joint.find(e.relation); own != joint.end()) {
      out.push_back(of_leaf(own->second, e));
      continue;
    }
    const Values in = inputs_of(t, e);
    std::vector<bool> active(in.size(), false);
    active.back() = true;
    const std::vector<Tangent> ct = {
        r[static_cast<std::size_t>(writer(e).group().index)]};
    const VjpResult back = vjp_values(writer(e).leaf_program(e.leaf), active, in, ct);
    out.push_back(materialize(back.cotangents.back(), in.back().type()));
  }
  return out;
}

LeafGradients DenseRule::pull_back(StepTerms&, const std::vector<Value>& operands) const {
  LeafGradients out;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    add_to(out, leaf_name(entries_[i].leaf), operands[i]);
  return out;
}

LeafGradients DenseRule::entry(StepTerms&, const GroupSignals& lambda,
                               const GroupSignals& filtered_credit,
                               const std::vector<Value>& before) const {
  LeafGradients out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    contract(out, own(lambda, e), e, loaded(before[i], e));
    if (filtered())
      contract(out, own(filtered_credit, e), e, loaded(before[entries_.size() + i], e));
  }
  return out;
}

}  // namespace braintrace
