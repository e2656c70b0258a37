// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves element-by-element work whose operands were turned (their axes put in another
// order) behind the turns under which its result is read: W' * a, read as its transpose,
// becomes W * a' on the memory of W as it lies. Operands that are only stretched turn for
// nothing.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values.
//   Skips: results somebody reads as they are, chains with an operand that lies in the
//   order of the result.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph turn_chains(const Graph& g);

}  // namespace braintrace
