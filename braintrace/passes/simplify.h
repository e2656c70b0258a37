// SPDX-License-Identifier: Apache-2.0
#pragma once
// Applies the identities ops declare in OpDef::simplify: x - 0, x * 1, x + (-0.0),
// double negation, reshape of reshape, transpose of transpose, no-op conversions, slices
// and broadcasts, select by a constant.
//   Needs: a verified graph; finds more after fold.
//   Keeps: inputs, outputs, derivatives, values bit for bit.
//   Skips: what IEEE forbids: x * 0 (NaN, inf, -0.0) and x + 0.0 on floats (-0.0 + 0.0
//          is 0.0; integers are simplified).
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph simplify(const Graph& g);

}  // namespace braintrace
