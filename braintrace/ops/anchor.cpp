// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/anchor.h"

#include <fmt/format.h>

#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

template <class F>
auto with_signature(const Site& s, F f) {
  std::vector<Type> in, out;
  for (const Value& v : s.in) in.push_back(v.type());
  for (const Value& v : s.out) out.push_back(v.type());
  if (out.empty()) out = infer_types(s.op, in, s.attrs);
  return f(Signature{in, out, s.attrs});
}

}  // namespace

std::vector<Value> effective_weights(const EtpRule& rule, const Site& s) {
  if (rule.effective) return rule.effective(s);
  return with_signature(s, [&](const Signature& sig) {
    std::vector<Value> weights;
    for (const WeightInput& w : rule.weights(sig))
      weights.push_back(s.in[static_cast<std::size_t>(w.input)]);
    return weights;
  });
}

std::size_t num_slots(const EtpRule& rule, const Site& s) {
  if (rule.effective) return rule.effective(s).size();
  return with_signature(s,
                        [&](const Signature& sig) { return rule.weights(sig).size(); });
}

Value anchor_broadcast(const Anchor& anchor, const Value& c, const Shape& trace) {
  BT_REQUIRE(anchor.size() == trace.size(),
             fmt::format("anchor_broadcast: {} anchor axes for a trace of shape {}",
                         anchor.size(), to_string(trace)));
  Ints order;
  for (const AnchorAxis& a : anchor)
    if (a.y_axis >= 0) order.push_back(a.y_axis);
  BT_REQUIRE(static_cast<std::int64_t>(order.size()) == c.rank(),
             fmt::format("anchor_broadcast: the anchor names {} axes of an output of "
                         "shape {}",
                         order.size(), to_string(c.shape())));
  Value v = order.empty() ? c : transpose(c, order);
  std::int64_t axis = 0;
  Shape stretched;  // with size 1 where entries share a position
  for (const AnchorAxis& a : anchor) {
    if (a.y_axis < 0) {
      stretched.push_back(1);
      continue;
    }
    if (!a.index.empty()) v = take(v, a.index.array(), axis);
    stretched.push_back(v.dim(axis++));
  }
  return broadcast_to(reshape(v, stretched), trace);
}

Value anchor_product(const Anchor& anchor, const Value& m, const Value& eps) {
  Ints order;
  for (const AnchorAxis& a : anchor)
    if (a.y_axis >= 0) order.push_back(a.y_axis);
  const auto lead = static_cast<std::int64_t>(order.size());
  BT_REQUIRE(
      m.rank() == lead + 2 && eps.rank() == std::ssize(anchor) + 1,
      fmt::format("anchor_product: matrices of shape {} and a trace of shape {} do "
                  "not fit an anchor of {} axes",
                  to_string(m.shape()), to_string(eps.shape()), anchor.size()));
  order.insert(order.end(), {lead, lead + 1});
  Value f = transpose(m, order);
  DotDims dims{.lhs_contract = {lead + 1}, .rhs_contract = {eps.rank() - 1}};
  Ints back;  // where each trace axis lies in the product: shared, rows, free
  std::int64_t shared = 0, free = lead + 1;
  for (std::size_t k = 0; k < anchor.size(); ++k) {
    if (anchor[k].y_axis < 0) {
      back.push_back(free++);
      continue;
    }
    if (!anchor[k].index.empty()) f = take(f, anchor[k].index.array(), shared);
    dims.lhs_batch.push_back(shared);
    dims.rhs_batch.push_back(static_cast<std::int64_t>(k));
    back.push_back(shared++);
  }
  back.push_back(lead);
  return transpose(dot_general(f, eps, dims), back);
}

Value contract_trace(const EtpRule& rule, const Site& s, int slot, const Value& trace) {
  if (rule.contract) return rule.contract(s, slot, trace);
  const Value weight = effective_weights(rule, s)[static_cast<std::size_t>(slot)];
  const std::int64_t lead = trace.rank() - weight.rank();
  return lead > 0 ? sum(trace, {.axes = iota_ints(lead)}) : trace;
}

}  // namespace braintrace
