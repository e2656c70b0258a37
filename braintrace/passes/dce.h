// SPDX-License-Identifier: Apache-2.0
#pragma once
// Removes nodes whose values reach no output.
//   Needs: a verified graph.
//   Keeps: inputs (used or not), outputs, values, derivatives.
//   Skips: unused inputs and outputs of sub-graphs, which are part of their op's
//   signature.
#include "braintrace/ir/graph.h"

namespace braintrace {

Graph dce(const Graph& g);

}  // namespace braintrace
