// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves a product into the large sum it is added to:
//   sum of u v over leading axes + x^T y  ->  sum of (u v + x y)
// The executor goes through u anyway (a trace that a signal meets), so what the newest
// step adds to a gradient costs neither a product of its own nor a pass that adds it.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values up to the order of sums.
//   Skips: small sums, sums of more than one product, a product or a sum that somebody
//   else
//          reads, products that contract other sizes than the sum does.
// Leaves the nodes it replaced to dce.
#include "braintrace/ir/graph.h"

namespace braintrace {

struct JoinSumsOptions {
  std::int64_t min_size = 1 << 15;  // of what is summed
};
Graph join_sums(const Graph& g, const JoinSumsOptions& options = {});

}  // namespace braintrace
