// SPDX-License-Identifier: Apache-2.0
#pragma once
// Merges nodes that compute the same value: same op, inputs and attributes. Two-input
// commutative ops are matched in either order.
//   Needs: a verified graph.
//   Keeps: inputs, outputs, values, derivatives.
//   Skips: nodes of different sub-graphs; each sub-graph is treated on its own.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph cse(const Graph& g);

}  // namespace braintrace
