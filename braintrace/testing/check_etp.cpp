// SPDX-License-Identifier: Apache-2.0
// Check 7 of the op harness: what an EtpRule says about traces against the weight-vjp.
#include <algorithm>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/anchor.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/testing/check_op_impl.h"

namespace braintrace::testing::internal {
namespace {

// One use of the op on numbers, as its rule sees it.
struct Subject {
  const Checked& k;
  const EtpRule& rule;
  const Node& node;
  std::vector<Value> in, out;
  std::vector<Type> in_types, out_types;

  Site site() const { return {*node.op, in, out, node.attrs, node.loc}; }
  Signature signature() const { return {in_types, out_types, node.attrs}; }
};

Subject subject(const Checked& k, const Use& u) {
  Subject s{k, *u.node->op->etp, *u.node, {}, {}, {}, {}};
  s.in.assign(u.in.begin(), u.in.end());
  s.out.assign(u.out.begin(), u.out.end());
  for (const Array& a : u.in) s.in_types.push_back(type_of(a));
  for (const Array& a : u.out) s.out_types.push_back(type_of(a));
  return s;
}

Value random_like(const Value& v, std::uint64_t seed) {
  return uniform(v.shape(), -1, 1, seed).astype(v.dtype());
}

void check_anchor(const Subject& s, int slot, const Anchor& anchor, const Type& trace) {
  if (static_cast<std::int64_t>(anchor.size()) != trace.rank())
    fail(s.k, fmt::format("ETP slot {}: {} anchor axes for trace {}", slot, anchor.size(),
                          to_string(trace)));
  Ints y_axes;
  for (const AnchorAxis& a : anchor)
    if (a.y_axis >= 0) y_axes.push_back(a.y_axis);
  std::sort(y_axes.begin(), y_axes.end());
  if (y_axes != iota_ints(s.out[0].rank()))
    fail(s.k,
         fmt::format("ETP slot {}: the anchor names output axes {}, every axis of {} "
                     "must appear once",
                     slot, to_string(y_axes), to_string(s.out_types[0])));
}

// The gradient of slot `slot` for output cotangent c, through the trace.
Value through_trace(const Subject& s, int slot, const Value& c, double& worst) {
  const Type trace = s.rule.trace(s.signature(), slot);
  const Anchor anchor = s.rule.anchor(s.signature(), slot);
  check_anchor(s, slot, anchor, trace);
  const Value unit = s.rule.instant(s.site(), slot, ones_like(s.out[0]));
  if (unit.type() != trace)
    fail(s.k, fmt::format("ETP slot {}: instant has type {}, the trace {}", slot,
                          to_string(unit.type()), to_string(trace)));
  const Value scaled = unit * anchor_broadcast(anchor, c, trace.shape);
  const Value direct = s.rule.instant(s.site(), slot, c);
  worst = std::max(
      worst, check_close(label(s.k, fmt::format("ETP slot {}: instant(c) against "
                                                "instant(1) * c at the anchor",
                                                slot)),
                         direct.array(), scaled.array(), value_tolerance(trace.dtype)));
  return contract_trace(s.rule, s.site(), slot, scaled);
}

// Cotangents of the raw weights for those of the slots.
std::vector<Tangent> through_prologue(const Subject& s, const std::vector<bool>& active,
                                      const std::vector<Value>& slots) {
  const Graph g = trace(
      [&](const Values& in) {
        const Values out = emit(*s.node.op, in, s.node.attrs);
        return effective_weights(s.rule, {*s.node.op, in, out, s.node.attrs, {}});
      },
      s.in_types);
  const std::vector<Tangent> ct(slots.begin(), slots.end());
  return vjp_values(g, active, s.in, ct).cotangents;
}

void check_use(const Checked& k, const Use& u, double& worst) {
  const Subject s = subject(k, u);
  const Value c = random_like(s.out[0], 31);
  std::vector<bool> active(s.in.size(), false);
  const std::vector<WeightInput> weights = s.rule.weights(s.signature());
  for (const WeightInput& w : weights)
    active.at(static_cast<std::size_t>(w.input)) = true;

  std::vector<Value> slots;
  for (std::size_t i = 0; i < num_slots(s.rule, s.site()); ++i)
    slots.push_back(through_trace(s, static_cast<int>(i), c, worst));
  const std::vector<Tangent> got = through_prologue(s, active, slots);

  const Graph op = trace(
      [&](const Values& in) { return emit(*s.node.op, in, s.node.attrs); }, s.in_types);
  const std::vector<Tangent> ct = {c};
  const std::vector<Tangent> want = vjp_values(op, active, s.in, ct).cotangents;
  for (const WeightInput& w : weights) {
    const auto i = static_cast<std::size_t>(w.input);
    const Type type = s.in_types[i];
    const auto what = fmt::format(
        "ETP: gradient of {} (input {}) through the trace "
        "against the vjp",
        w.key, i);
    worst = std::max(worst, check_close(label(k, what), materialize(got[i], type).array(),
                                        materialize(want[i], type).array(),
                                        value_tolerance(type.dtype)));
  }
}

}  // namespace

void check_etp(Checked& k) {
  if (!k.op->etp) return;
  double worst = 0;
  for (const Use& u : uses(k)) check_use(k, u, worst);
  note(k, "etp", worst);
}

}  // namespace braintrace::testing::internal
