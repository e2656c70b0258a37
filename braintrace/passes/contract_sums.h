// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns sums of products into matrix products, so that a gradient that is computed for
// many steps and summed is one product with the steps as its inner dimension.
//   sum over batch or free axes of a product  ->  a product that contracts them
//   sum of stretched factors' product         ->  a product, where writing it out would
//                                                 make something larger than its factors
//   outer products under a sum that would come out turned: made turned, and factors that
//   no sum meets multiplied behind it
//   a b + a c                                 ->  a (b + c)
//   permuted or stretched operands, a permuted product  ->  other axes of the product
//   sum of a sum                              ->  one sum
//   Needs: a verified graph that will only be run: a trainable op may become a plain
//          product.
//   Keeps: inputs, outputs, values up to the order of sums and of factors under them.
//   Skips: products somebody else reads, sums of three factors that do not fit into each
//          other, integers.
// Leaves the nodes it replaced to dce.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph contract_sums(const Graph& g);

}  // namespace braintrace
