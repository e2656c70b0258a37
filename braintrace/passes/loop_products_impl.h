// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products with loop-invariant weights, and loops written anew around them. For
// fuse_gates.
#include <functional>
#include <map>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/region_view.h"
#include "braintrace/passes/lowered_impl.h"

namespace braintrace {

// x[..., k] w (+ bias): contracts the last axis of x with axis `contract` of the weight,
// a constant of the loop with two axes.
struct LoopProduct {
  const Node* node = nullptr;
  ValueId x, weight;
  std::optional<ValueId> bias = {};  // a constant of the loop
  std::int64_t contract = 0;
  std::int64_t free() const { return 1 - contract; }
};
std::optional<LoopProduct> as_loop_product(const LoweredGraph& body, const ScanView& scan,
                                           const Node& n);

// x[..., k] w (+ bias) anew.
Value emit_product(const Value& x, const Value& weight, std::int64_t contract,
                   const Tangent& bias);

// What becomes of one node of a body. `write` sets the values of the node's outputs, by
// old id, in the new body's values; it may read those in `reads` and values from outside
// the loop.
struct BodyRule {
  std::vector<ValueId> reads;
  std::function<void(std::span<Value>)> write;
};
using BodyRules = std::map<const Node*, BodyRule>;

// The loop with a changed body: nodes without a rule are copied, what nobody reads any
// more is dropped. `outer` has the values of the loop's inputs.
Values rewrite_loop(const ScanView& scan, std::span<const Value> outer,
                    const BodyRules& rules);

}  // namespace braintrace
