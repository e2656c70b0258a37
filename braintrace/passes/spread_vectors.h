// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns products of many matrices with one vector each into a multiplication and a sum,
// where the axis that counts the matrices lies innermost: a trace met by a signal. The
// executor reads the matrices once, as they lie; a product would turn them first.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values up to the order of sums.
//   Skips: products that sum over other than the leading axes of the matrices.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph spread_vectors(const Graph& g);

}  // namespace braintrace
