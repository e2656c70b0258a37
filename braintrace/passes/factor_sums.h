// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products with a common factor that are added:
//   x^T a + x^T b + c  ->  x^T (a + b) + c
// also behind the same linear ops, and where the factors that differ are such products
// themselves: sum(conv(x, view(a w))) + sum(conv(x, view(b w))). What the newest step and
// the past do to a weight are such products: its gradient costs one of them, and one pass
// over an array of its size less.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values up to the order of sums.
//   Skips: products and sums that somebody else reads, other factors at least half as
//          large as the product that are no such products, sub-graphs.
// Leaves the nodes it replaced to dce.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph factor_sums(const Graph& g);

}  // namespace braintrace
