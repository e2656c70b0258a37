// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs around an EtpRule: from output positions to trace entries, and from traces to
// weights. They use the rule's slots only.
#include "braintrace/ir/op_def.h"

namespace braintrace {

// Number of slots (effective weights) of one use of an ETP op.
std::size_t num_slots(const EtpRule& rule, const Site& s);
// The effective weights themselves.
std::vector<Value> effective_weights(const EtpRule& rule, const Site& s);

// c (shaped like y) at the position each trace entry drives: result[k] = c[anchor(k)].
Value anchor_broadcast(const Anchor& anchor, const Value& c, const Shape& trace);

// Matrices per output position meet the state axis of a trace (trace..., b):
//   result[k, a] = sum_b m[anchor(k), a, b] eps[k, b]           m is (*y, a, b)
Value anchor_product(const Anchor& anchor, const Value& m, const Value& eps);

// Sums a trace to the shape of its slot, by the rule or over the leading axes the slot
// does not have.
Value contract_trace(const EtpRule& rule, const Site& s, int slot, const Value& trace);

}  // namespace braintrace
