// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes few large products of many small ones inside loops, where weights are the same at
// every step and can be put side by side once, before the loop.
//   products of one x with several weights        ->  one product, sliced
//   x V + y W                                     ->  [x, y] [V; W]
//   a product of which only a part is read        ->  the product with that part
//   Needs: a verified graph that will only be run: a trainable op may become a plain
//          product. Finds more after split_scan, which takes what is computed from
//          weights alone out of the loop.
//   Keeps: inputs, outputs, values up to the order of sums.
//   Skips: loops shorter than min_length, products with batch axes or weights of more
//          than two axes, weights that are no constants of the loop.
#include "braintrace/ir/graph.h"

namespace braintrace {

struct FuseGatesOptions {
  std::int64_t min_length = 4;
};
Graph fuse_gates(const Graph& g, const FuseGatesOptions& options = {});

}  // namespace braintrace
