// SPDX-License-Identifier: Apache-2.0
#pragma once
// A part of a product is the product of parts: products compute what is read of them.
//   slice (x w)  ->  (slice x) (slice w)
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values up to the order of sums.
//   Skips: products somebody else reads, and those with a bias.
// Leaves the nodes it replaced to dce.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph slice_products(const Graph& g);

}  // namespace braintrace
