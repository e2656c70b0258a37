// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/per_param_rule.h"

#include "braintrace/ops/ops.h"

namespace braintrace {

PerParamRule::PerParamRule(const RuleContext& context, std::vector<std::size_t> relations)
    : LearningRule(context), kappa_(context.config().kappa().value_or(0)) {
  for (std::size_t r : relations) {
    const auto slots = static_cast<std::size_t>(context.relations()[r].num_slots());
    entries_.push_back({r, num_slots_, slots,
                        context.relations()[r].relation().control_flow_context.get()});
    num_slots_ += slots;
  }
}

std::vector<TraceSlot> PerParamRule::traces() const {
  std::vector<TraceSlot> out;
  for (const bool filter : {false, true}) {
    if (filter && !filtered()) break;
    for (const Entry& e : entries_) {
      const RelationWriter& r = context().relations()[e.relation];
      for (std::size_t s = 0; s < e.slots; ++s) {
        const auto slot = static_cast<std::int64_t>(s);
        TraceSlot t{.kind = filter ? "kappa_filtered" : "bwg",
                    .key = r.slot_key(slot),
                    .relation = static_cast<std::int64_t>(r.index()),
                    .group = r.group().index};
        t.type = r.trace(slot, context().width(r.group().index));
        t.type.dtype = context().algorithm().options.trace_dtype.value_or(t.type.dtype);
        out.push_back(std::move(t));
      }
    }
  }
  return out;
}

Value PerParamRule::stored(const Value& eps) const {
  const auto dtype = context().algorithm().options.trace_dtype;
  return dtype ? astype(eps, *dtype) : eps;
}

Value PerParamRule::loaded(const Value& eps, const Entry& e) const {
  const DType dtype = context().relations()[e.relation].y_type().dtype;
  return eps.dtype() == dtype ? eps : astype(eps, dtype);
}

Value PerParamRule::carried(StepTerms& t, const Entry& e, std::int64_t slot,
                            const Value& eps) const {
  const RelationWriter& r = context().relations()[e.relation];
  const std::optional<Value>& d = t.D(r.group().index);
  return d ? r.carried(slot, *d, loaded(eps, e), context().pattern(r.group().index))
           : zeros_like(loaded(eps, e));
}

void PerParamRule::move(StepTerms& t, const Entry& e, std::vector<Value>& eps,
                        bool instant) const {
  const RelationWriter& r = context().relations()[e.relation];
  for (std::size_t s = 0; s < e.slots; ++s) {
    const auto slot = static_cast<std::int64_t>(s);
    const std::size_t i = e.first + s;
    Value next = carried(t, e, slot, eps[i]);
    if (instant) next = next + r.instant(t.values(), slot, t.df(e.relation));
    eps[i] = stored(next);
  }
}

std::vector<Value> PerParamRule::moved_on(StepTerms& t, const std::vector<Value>& eps,
                                          bool instant) const {
  std::vector<Value> out = eps;
  std::map<const ScanDescentInfo*, std::vector<const Entry*>> inside;
  for (const Entry& e : entries_) {
    if (e.loop)
      inside[e.loop].push_back(&e);
    else
      move(t, e, out, instant);
  }
  for (const auto& [loop, entries] : inside) {
    const LoopValues& values = context().loop(loop);
    std::vector<std::size_t> slots;
    Values init;
    for (const Entry* e : entries)
      for (std::size_t i = e->first; i < e->first + e->slots; ++i) {
        slots.push_back(i);
        init.push_back(eps[i]);
      }
    const ScanResult r = scan(
        [&](const Values& in) {
          const std::span<const Value> all(in);
          StepTerms sub = t.within(values.at(t.values(), all.subspan(init.size())));
          std::vector<Value> now = eps;
          for (std::size_t k = 0; k < slots.size(); ++k) now[slots[k]] = in[k];
          for (const Entry* e : entries) move(sub, *e, now, instant);
          Values next;
          for (std::size_t i : slots) next.push_back(now[i]);
          return next;
        },
        init, values.stacked(t.values()));
    for (std::size_t k = 0; k < slots.size(); ++k) out[slots[k]] = r.carry[k];
  }
  return out;
}

std::vector<Value> PerParamRule::roll(StepTerms& t, const std::vector<Value>& eps) const {
  const bool every_step = context().options().kappa_advance == KappaAdvance::every_step;
  std::vector<Value> out = moved_on(t, eps, true);
  if (!filtered() || !every_step) return out;
  for (const Entry& e : entries_)
    for (std::size_t i = e.first; i < e.first + e.slots; ++i)
      out[num_slots_ + i] =
          stored(loaded(eps[num_slots_ + i], e) * kappa_ + loaded(out[i], e));
  return out;
}

std::vector<Value> PerParamRule::slots_of(const std::vector<Value>& eps, const Entry& e,
                                          bool filter) const {
  std::vector<Value> out;
  for (std::size_t s = 0; s < e.slots; ++s)
    out.push_back(loaded(eps[(filter ? num_slots_ : 0) + e.first + s], e));
  return out;
}

LeafGradients PerParamRule::contract(StepTerms& t, const GroupSignals& signals,
                                     const Entry& e,
                                     const std::vector<Value>& slots) const {
  const RelationWriter& r = context().relations()[e.relation];
  const auto g = static_cast<std::size_t>(r.group().index);
  const Value signal = widened_signal(r.group(), signals[g]);
  const StepValues inside =
      e.loop ? context().loop(e.loop).last(t.values()) : StepValues{};
  const StepValues& values = e.loop ? inside : t.values();
  return r.pull_back(values, r.contracted(values, signal, slots),
                     context().options().prologue);
}

LeafGradients PerParamRule::solve(StepTerms& t, const GroupSignals& signals,
                                  std::vector<Value>& eps) const {
  const bool on_gradient = context().options().kappa_advance == KappaAdvance::on_gradient;
  LeafGradients out;
  for (const Entry& e : entries_) {
    if (filtered() && on_gradient && t.moves_filters)
      for (std::size_t i = e.first; i < e.first + e.slots; ++i)
        eps[num_slots_ + i] =
            stored(loaded(eps[num_slots_ + i], e) * kappa_ + loaded(eps[i], e));
    add_to(out, contract(t, signals, e, slots_of(eps, e, filtered())));
  }
  return out;
}

LeafGradients PerParamRule::history(StepTerms& t, const GroupSignals& signals,
                                    const std::vector<Value>& before,
                                    const std::vector<Value>&) const {
  const std::vector<Value> past = moved_on(t, before, false);
  LeafGradients out;
  for (const Entry& e : entries_) {
    const bool carries = e.loop || t.D(context().relations()[e.relation].group().index);
    if (!carries && !filtered()) continue;
    std::vector<Value> slots;
    for (std::size_t i = e.first; i < e.first + e.slots; ++i) {
      Value c = loaded(past[i], e);
      if (filtered()) c = c + loaded(before[num_slots_ + i], e) * kappa_;
      slots.push_back(c);
    }
    add_to(out, contract(t, signals, e, slots));
  }
  return out;
}

// ---- windows --------------------------------------------------------------------------

WindowForm PerParamRule::window_form() const {
  for (const Entry& e : entries_) {
    const HiddenGroup& g = context().relations()[e.relation].group();
    if (e.loop) return WindowForm::per_step;
    if (context().width(g.index) != g.num_state()) return WindowForm::per_step;
  }
  return WindowForm::credit;
}

std::vector<Value> PerParamRule::credit(StepTerms& t, const GroupSignals& r) const {
  std::vector<Value> out;
  for (const Entry& e : entries_) {
    const RelationWriter& w = context().relations()[e.relation];
    const Value& earned = r[static_cast<std::size_t>(w.group().index)];
    const Value ct = sum(t.df(e.relation) * earned, {.axes = {-1}});
    for (const Value& g : w.weight_gradient(t.values(), ct)) out.push_back(g);
  }
  return out;
}

LeafGradients PerParamRule::pull_back(StepTerms& t,
                                      const std::vector<Value>& operands) const {
  LeafGradients out;
  auto next = operands.begin();
  for (const Entry& e : entries_) {
    const RelationWriter& w = context().relations()[e.relation];
    const auto end = next + static_cast<std::ptrdiff_t>(w.num_operands());
    add_to(out, w.pull_back(t.values(), {next, end}, context().options().prologue));
    next = end;
  }
  return out;
}

LeafGradients PerParamRule::entry(StepTerms& t, const GroupSignals& lambda,
                                  const GroupSignals& filtered_credit,
                                  const std::vector<Value>& before) const {
  LeafGradients out;
  for (const Entry& e : entries_) {
    add_to(out, contract(t, lambda, e, slots_of(before, e, false)));
    if (filtered())
      add_to(out, contract(t, filtered_credit, e, slots_of(before, e, true)));
  }
  return out;
}

std::vector<Value> PerParamRule::moved(StepTerms&, const ToExit& m,
                                       const std::vector<Value>& before) const {
  std::vector<Value> out = before;
  for (const Entry& e : entries_) {
    const RelationWriter& w = context().relations()[e.relation];
    const auto g = static_cast<std::size_t>(w.group().index);
    for (std::size_t s = 0; s < e.slots; ++s) {
      const auto slot = static_cast<std::int64_t>(s);
      const std::size_t i = e.first + s;
      const Value eps = loaded(before[i], e);
      out[i] = m.plain[g] ? w.carried(slot, *m.plain[g], eps) : zeros_like(eps);
      if (!filtered()) continue;
      const Value kept = loaded(before[num_slots_ + i], e) * m.kept;
      out[num_slots_ + i] =
          m.filtered[g] ? kept + w.carried(slot, *m.filtered[g], eps) : kept;
    }
  }
  return out;
}

std::vector<Value> PerParamRule::arrived(StepTerms& t, const ToExit& m) const {
  std::vector<Value> out(num_slots_ * (filtered() ? 2 : 1));
  for (const Entry& e : entries_) {
    const RelationWriter& w = context().relations()[e.relation];
    const auto g = static_cast<std::size_t>(w.group().index);
    for (const bool filter : {false, true}) {
      if (filter && !filtered()) break;
      const std::optional<Value>& to = filter ? m.filtered[g] : m.plain[g];
      const Value df =
          to ? times_blocks(*to, t.df(e.relation)) : zeros_like(t.df(e.relation));
      for (std::size_t s = 0; s < e.slots; ++s)
        out[(filter ? num_slots_ : 0) + e.first + s] =
            w.instant(t.values(), static_cast<std::int64_t>(s), df);
    }
  }
  return out;
}

}  // namespace braintrace
