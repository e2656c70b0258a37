// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cutting a part out of a program, and asking what depends on what.
#include <span>
#include <vector>

#include "braintrace/ir/graph.h"

namespace braintrace {

// By value id: true for the seeds and everything computed from them.
std::vector<bool> depends_on(const Graph& g, std::span<const ValueId> seeds);

// The nodes that compute `outputs` from `inputs` (any values of g); constants are copied.
// An input listed twice keeps both places. Needs: the outputs depend on no other input of
// g.
Graph subgraph(const Graph& g, std::span<const ValueId> inputs,
               std::span<const ValueId> outputs);

}  // namespace braintrace
