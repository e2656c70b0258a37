// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns products that sum over nothing but axes of size 1 into multiplications, which
// join the chains that read them: what a single sample adds to traces and gradients.
// Multiplications of stretched values that are read under other axes move there. Operands
// take the order of axes in which the product is read, so that nothing is turned
// in memory.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values (up to the sign of zero).
//   Skips: products of integers, products with a bias.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph outer_products(const Graph& g);

}  // namespace braintrace
