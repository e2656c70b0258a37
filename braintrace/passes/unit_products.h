// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products with unit vectors need no sum. A Jacobian is taken on all unit vectors at
// once, so its first products have an operand that is zero off a diagonal:
//   sum over h of u[l,h] v[h] w[h,k], u the unit vectors  ->  v[l] w[l,k]
// A value is diagonal when it is a constant of unit vectors, shown under other axes,
// negated, multiplied by anything that repeats along one of the two axes, divided by it
// or, by a condition that does, chosen instead of zero.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values; what is not finite no longer spreads over the zeros.
//   Skips: products with a bias, units of several axes.
// Leaves the nodes it replaced to dce, products that sum nothing to outer_products.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph unit_products(const Graph& g);

}  // namespace braintrace
