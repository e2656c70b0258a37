// SPDX-License-Identifier: Apache-2.0
#pragma once
// Puts the body of a call in place of the call, and plain products in place of trainable
// ops that are made of them.
//   Needs: a verified graph that will not be differentiated or traced any more: a
//   function
//          with its own derivative loses it here, a trainable op its trace.
//   Keeps: inputs, outputs, values.
//   Skips: loops and branches.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph inline_calls(const Graph& g);

}  // namespace braintrace
