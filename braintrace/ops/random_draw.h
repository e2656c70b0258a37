// SPDX-License-Identifier: Apache-2.0
#pragma once
// What random_uniform and random_normal share: key i32[2] in, floats of attribute `shape`
// out, element i a function of (key, i) only.
#include "braintrace/ops/axis.h"

namespace braintrace {

// UserError unless i32[2].
void require_key(const Type& key);

// ---- slots ----
std::vector<Type> draw_type(std::span<const Type> in, const Attrs& attrs);
PositionMap draw_positions(const Signature& s);
template <RandomKind kind>
Lowering lower_draw(const Signature&) {
  return lowering::Random{kind};
}

// Batch slot: runs the op lane by lane and stacks, so a key per lane gives what a loop
// over the lanes gives.
BatchResult each_lane(const Site& s, std::span<const BatchAxis> axes);

Value draw(const OpDef& op, const Arg& key, const Shape& shape, DType dtype);

}  // namespace braintrace
