// SPDX-License-Identifier: Apache-2.0
#pragma once
// Forward mode: a program that also computes how its outputs move.
#include "braintrace/ops/calculus.h"

namespace braintrace {

// (inputs, tangents of the active inputs) -> (outputs, tangent of each float output).
// Tangents that are always zero appear as zeros; jvp_values() tells which are absent.
// UserError when an active input is not f32 or f64.
Graph jvp(const Graph& g, const std::vector<bool>& active);
Graph jvp(const Graph& g);  // every float input active

}  // namespace braintrace
