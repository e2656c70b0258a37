// SPDX-License-Identifier: Apache-2.0
#pragma once
// Takes from a loop what it computes anyway instead of computing it again behind it: a
// function of one stacked value, where the body has the same function of that value.
//   y, of all steps; sigmoid(y)  ->  sigmoid(y), of all steps
//   Needs: a verified graph without repeated nodes (cse).
//   Keeps: inputs, outputs, values, derivatives.
//   Skips: functions cheaper than a load, results larger than the stacked value, stacked
//          values somebody else reads; loops inside the body of a loop that changes.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph reuse_loop_values(const Graph& g);

}  // namespace braintrace
