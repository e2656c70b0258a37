// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sum over the groups of a convolution is one convolution with the channels of all
// groups:
//   sum over g of conv(x_g, k_g)  ->  conv([x_1 x_2 ..], [k_1; k_2; ..])
// The gradient of a kernel is such a sum: a group per step, when it is taken for all
// steps at once.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values up to the order of sums.
//   Skips: groups somebody else reads.
// Leaves the nodes it replaced to dce.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph sum_groups(const Graph& g);

}  // namespace braintrace
