// SPDX-License-Identifier: Apache-2.0
#pragma once
// Takes arrays of a few numbers per position (2 to 4 along the last axis: the states of a
// hidden group, rows of its Jacobian blocks) apart into one array per number, through
// loops too. Chains on the parts walk through memory without gaps, sums over the axis
// become additions, and sums over other axes see products that the joined array hid.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values up to the order and rounding of sums along the axis.
//   Skips: arrays nobody joins in the graph, branches and while loops; one axis per run.
// Leaves joins that nobody reads to dce.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph split_states(const Graph& g);

}  // namespace braintrace
