// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gives loops whose number of turns constants decide that number: while becomes scan, and
// reverse mode and analyses see inside.
//   i = 0; while i < 3: (i + 1, f(h))  ->  scan of 3 turns: (i + 1, f(h))
//   Needs: a verified graph.
//   Keeps: inputs, outputs, values, derivatives.
//   Skips: conditions that depend on inputs of the graph, in the first turn or a later
//   one;
//          loops of more than 4,096 turns.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph count_loops(const Graph& g);

}  // namespace braintrace
