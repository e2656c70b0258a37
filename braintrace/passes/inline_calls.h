// SPDX-License-Identifier: Apache-2.0
#pragma once
// Puts the body of a call in place of the call.
//   Needs: a verified graph that will not be differentiated any more: a function with its
//          own derivative loses it here.
//   Keeps: inputs, outputs, values.
//   Skips: loops and branches.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph inline_calls(const Graph& g);

}  // namespace braintrace
