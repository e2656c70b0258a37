// SPDX-License-Identifier: Apache-2.0
#pragma once
// Takes from a loop what it computes anyway instead of computing it again behind it:
// functions of stacked values, element by element, that the body has of these values.
//   y, of all steps; sigmoid(y)          ->  sigmoid(y), of all steps
//   g, y, of all steps; v = a g + b y    ->  v, of all steps
// products of these by what the loop is given, and whatever the loop hands out anyway:
//   h, y = h W, of all steps; h W        ->  y
// and what products or joined arrays read from memory anyway, which the loop writes while
// it is in the cache:
//   y, of all steps; [x, sign(y)] W      ->  [x, sign(y)], of all steps, beside y
//   Needs: a verified graph without repeated nodes (cse).
//   Keeps: inputs, outputs, values, derivatives.
//   Skips: of what nobody needs in memory, functions of one stacked value cheaper than a
//          load, results larger than the stacked values, stacked values somebody else
//          reads; loops inside the body of a loop that changes.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph reuse_loop_values(const Graph& g);

}  // namespace braintrace
