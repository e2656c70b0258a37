// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/io_rule.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

constexpr double kSmallestCorrection = 1e-8;
constexpr double kCorrectedCalls = 1000;  // the reference stops correcting here

std::vector<Value> added(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.empty()) return b;
  std::vector<Value> out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(a[i] + b[i]);
  return out;
}

// The op stands on the group's positions, one by one in their order. A weight without
// data may be shared along leading axes.
bool fits_factors(const RelationWriter& r) {
  const Shape &y = r.y_type().shape, &v = r.group().varshape();
  if (r.x_type()) return num_elements(y) == num_elements(v);
  return y.size() <= v.size() && std::equal(y.rbegin(), y.rend(), v.rbegin());
}

}  // namespace

IoRule::IoRule(const RuleContext& context, const std::vector<std::size_t>& relations)
    : LearningRule(context),
      a_x_(context.config().decay().x.value_or(0)),
      a_f_(context.config().decay().f.value_or(0)) {
  for (std::size_t r : relations) {
    const RelationWriter& w = context.relations()[r];
    const HiddenGroup& g = w.group();
    BT_REQUIRE(
        fits_factors(w),
        fmt::format("{}: the output of {} for {} has shape {}, but hidden group {} "
                    "has {}; two factors need the same positions",
                    context.algorithm().name, w.relation().primitive,
                    to_slashes(w.relation().path()), to_string(w.y_type().shape), g.index,
                    to_string(g.varshape())));
    const std::optional<std::size_t> x = x_slot(r);
    entries_.push_back({.relation = r, .f = slots_.size(), .x = x});
    Type type{w.y_type().dtype, g.varshape()};
    type.shape.push_back(context.width(g.index));
    slots_.push_back({.kind = "df",
                      .key = "df",
                      .relation = static_cast<std::int64_t>(w.index()),
                      .group = g.index,
                      .type = type});
  }
}

// Relations that read the same value share its filter.
std::optional<std::size_t> IoRule::x_slot(std::size_t relation) {
  const RelationWriter& w = context().relations()[relation];
  const std::optional<Type> type = w.x_type();
  if (!type) return std::nullopt;
  const auto index = static_cast<std::int64_t>(w.index());
  for (const Entry& e : entries_) {
    if (!e.x || writer(e).relation().x != w.relation().x) continue;
    TraceSlot& slot = slots_[*e.x];
    if (slot.type != *type) continue;
    if (slot.relation != index) slot.readers.push_back(index);
    return e.x;
  }
  slots_.push_back({.kind = "x", .key = "x", .relation = index, .type = *type});
  return slots_.size() - 1;
}

Value IoRule::newest(StepTerms& t, const Entry& e) const {
  const Value& df = t.df(e.relation);
  return a_f_ > 0 ? df * (1 - a_f_) : df;
}

bool IoRule::carries(StepTerms& t, const Entry& e) const {
  return a_f_ > 0 && t.D(writer(e).group().index).has_value();
}

std::vector<Value> IoRule::roll(StepTerms& t, const std::vector<Value>& eps) const {
  std::vector<Value> out(eps.size());
  std::vector<bool> done(eps.size(), false);
  for (const Entry& e : entries_) {
    const Value now = newest(t, e);
    const std::optional<Value>& d = t.D(writer(e).group().index);
    out[e.f] = carries(t, e) ? times_blocks(*d, eps[e.f]) * a_f_ + now : now;
    if (!e.x || done[*e.x]) continue;
    const Value x = *writer(e).x_representation(t.values());
    out[*e.x] = a_x_ > 0 ? eps[*e.x] * a_x_ + x : x;
    done[*e.x] = true;
  }
  return out;
}

Value IoRule::meet(const StepTerms& t, const GroupSignals& signals, const Entry& e,
                   const Value& f) const {
  const auto g = static_cast<std::size_t>(writer(e).group().index);
  const Value q = sum(f * signals[g], {.axes = {-1}});
  if (a_f_ == 0) return q;
  const bool by_call = context().options().bias_correction == BiasCorrection::calls;
  const Value n = astype(by_call ? t.calls + 1 : t.steps_in_traces(), q.dtype());
  // 1 - a_f^n, without the loss of digits when a_f is close to one.
  Value c = maximum(-expm1(n * std::log(a_f_)), kSmallestCorrection);
  if (by_call) c = select(n > kCorrectedCalls, ones_like(c), c);
  return q / c;
}

LeafGradients IoRule::solve(StepTerms& t, const GroupSignals& signals,
                            std::vector<Value>& eps) const {
  LeafGradients out;
  for (const Entry& e : entries_) {
    const std::optional<Value> x = e.x ? std::optional(eps[*e.x]) : std::nullopt;
    const Value q = meet(t, signals, e, eps[e.f]);
    add_to(out,
           writer(e).pull_back(t.values(), writer(e).weight_gradient(t.values(), q, x),
                               context().options().prologue));
  }
  return out;
}

LeafGradients IoRule::history(StepTerms& t, const GroupSignals& signals,
                              const std::vector<Value>& before,
                              const std::vector<Value>& after) const {
  LeafGradients out;
  for (const Entry& e : entries_) {
    const RelationWriter& w = writer(e);
    std::vector<Value> operands;
    if (carries(t, e)) {
      // With the data of the step, as the newest step's own product.
      const Value q = meet(t, signals, e, after[e.f] - newest(t, e));
      operands = w.weight_gradient(t.values(), q);
    }
    if (e.x && a_x_ > 0) {
      const Value q = meet(t, signals, e, after[e.f]);
      std::vector<Value> older = w.weight_gradient(t.values(), q, before[*e.x] * a_x_);
      // A bias has no older data: its product is the newest step's, which is exact.
      const std::vector<bool> reads = w.reads_data();
      for (std::size_t i = 0; i < older.size(); ++i)
        if (!reads[i]) older[i] = zeros_like(older[i]);
      operands = added(operands, older);
    }
    if (operands.empty()) continue;
    add_to(out, w.pull_back(t.values(), operands, context().options().prologue));
  }
  return out;
}

// ---- windows --------------------------------------------------------------------------

std::vector<ValueId> IoRule::fixed_in_windows() const {
  std::vector<ValueId> out;
  for (const Entry& e : entries_)
    for (ValueId v : writer(e).weight_reads()) out.push_back(v);
  return out;
}

MetData IoRule::met(StepTerms& t, const GroupSignals& signals,
                    const std::vector<Value>& after, OwnTerms own) const {
  MetData m;
  for (const Entry& e : entries_) {
    const Value all = meet(t, signals, e, after[e.f]);
    m.older.push_back(all);
    if (own == OwnTerms::counted)
      m.now.push_back(all);
    else if (carries(t, e))
      m.now.push_back(meet(t, signals, e, after[e.f] - newest(t, e)));
    else
      m.now.push_back(zeros_like(all));
  }
  return m;
}

std::vector<Value> IoRule::earned(StepTerms& t, const std::vector<Value>& now,
                                  const std::vector<Value>& with_data) const {
  std::vector<Value> out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const RelationWriter& w = writer(entries_[i]);
    const std::vector<bool> reads = w.reads_data();
    const std::vector<Value> own = w.weight_gradient(t.values(), now[i]);
    const std::vector<Value> data = w.weight_gradient(t.values(), with_data[i]);
    for (std::size_t k = 0; k < own.size(); ++k)
      out.push_back(reads[k] ? data[k] : own[k]);
  }
  return out;
}

std::vector<Value> IoRule::earned_before(StepTerms& t, const std::vector<Value>& older,
                                         const std::vector<Value>& before) const {
  std::vector<Value> out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    const RelationWriter& w = writer(e);
    const std::optional<Value> x = e.x ? std::optional(before[*e.x]) : std::nullopt;
    const std::vector<bool> reads = w.reads_data();
    std::vector<Value> data = w.weight_gradient(t.values(), older[i], x);
    for (std::size_t k = 0; k < data.size(); ++k)
      out.push_back(reads[k] ? data[k] : zeros_like(data[k]));
  }
  return out;
}

LeafGradients IoRule::pull_back(StepTerms& t, const std::vector<Value>& operands) const {
  LeafGradients out;
  auto next = operands.begin();
  for (const Entry& e : entries_) {
    const auto end = next + static_cast<std::ptrdiff_t>(writer(e).num_operands());
    add_to(out,
           writer(e).pull_back(t.values(), {next, end}, context().options().prologue));
    next = end;
  }
  return out;
}

}  // namespace braintrace
