// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lets element-by-element ops work without axes of size 1: a reshape in front of each
// operand and one behind, which cancel between neighbours. So chains that differ in such
// axes only have one shape and run as one. Sums over axes of size 1 become reshapes.
//   Needs: a verified graph. Leaves reshapes of reshapes to simplify.
//   Keeps: inputs, outputs, values (up to the sign of a zero), derivatives.
//   Skips: ops on other shapes.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph squeeze_axes(const Graph& g);

}  // namespace braintrace
