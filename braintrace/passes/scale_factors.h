// SPDX-License-Identifier: Apache-2.0
#pragma once
// A number that multiplies a large sum of products goes to their small factors:
//   rate (x' y + s t)  ->  (rate x)' y + (rate s) t
// An update of weights then is a sum of products that begins with the weights, for which
// the executor has kernels, and no pass of its own.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values up to the order of multiplications.
//   Skips: sums of which something else reads a part that is as large.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph scale_factors(const Graph& g);

}  // namespace braintrace
