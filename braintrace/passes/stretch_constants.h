// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes constants whose elements are all the same as a stretched scalar, which costs
// nothing to hash, to copy or to keep in a cache.
//   Needs: a verified graph.
//   Keeps: inputs, outputs, derivatives, values bit for bit.
//   Skips: constants of one element or none.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph stretch_constants(const Graph& g);

}  // namespace braintrace
