// SPDX-License-Identifier: Apache-2.0
#pragma once
// Leaves in a loop only what must go from step to step.
//   what is the same at every step           ->  once, before the loop
//   products of what the loop reads only     ->  for all steps at once, before the loop
//   what feeds no carry, if it holds products or needs no more memory than its result
//                                            ->  for all steps at once, behind the loop,
//                                                from the values it needs, stacked
//   a carry nobody reads, or that never changes; ys nobody reads  ->  gone
// A value that is a cheap function of stacked ones is computed again, not stacked.
//   Needs: a verified graph.
//   Keeps: inputs, outputs, derivatives; values up to the order of sums (a product of all
//          steps may be added in another order).
//   Skips: loops without steps; moving anything when the stacked values would take more
//          than max_bytes; loops and branches inside the body, random numbers, products
//          other than dense ones with weights that change (they stay in the loop).
#include "braintrace/ir/graph.h"

namespace braintrace {

struct SplitScanOptions {
  std::int64_t max_bytes = std::int64_t{256} << 20;  // of what is stacked in addition
};
Graph split_scan(const Graph& g, const SplitScanOptions& options = {});

}  // namespace braintrace
