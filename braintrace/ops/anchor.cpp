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

Value index_array(const Ints& index) {
  return array({static_cast<std::int64_t>(index.size())},
               std::vector<double>(index.begin(), index.end()), DType::i32);
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
    if (!a.index.empty()) v = take(v, index_array(a.index), axis);
    stretched.push_back(v.dim(axis++));
  }
  return broadcast_to(reshape(v, stretched), trace);
}

Value contract_trace(const EtpRule& rule, const Site& s, int slot, const Value& trace) {
  if (rule.contract) return rule.contract(s, slot, trace);
  const Value weight = effective_weights(rule, s)[static_cast<std::size_t>(slot)];
  const std::int64_t lead = trace.rank() - weight.rank();
  return lead > 0 ? sum(trace, {.axes = iota_ints(lead)}) : trace;
}

}  // namespace braintrace
