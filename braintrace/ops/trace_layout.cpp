// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ops/trace_layout.h"

#include <algorithm>

#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

// b keeps the trace of the product b a, without alpha: pulling it back to b would sum
// over positions. a has its own, for the b of the moment.
Values low_rank(const Site& s, const Values& slots) {
  const DotDims over_in{.lhs_contract = {0}, .rhs_contract = {slots[0].rank() - 2}};
  const Value low = dot_general(s.in[1], slots[0], over_in) * s.attrs.real("alpha");
  // [rank, ..., out] -> [..., rank, out]
  Ints order = iota_ints(low.rank());
  std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  Values out = {slots[0], transpose(low, order)};
  if (slots.size() > 1) out.push_back(slots[1]);
  return out;
}

}  // namespace

Values traces_per_weight(const Site& s, const Values& slots) {
  return &s.op == &lora_matmul_op ? low_rank(s, slots) : slots;
}

}  // namespace braintrace
