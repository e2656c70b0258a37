// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reverse mode: linearize, then transpose.
#include "braintrace/ops/calculus.h"

namespace braintrace {

// (inputs, cotangent of each float output) -> (outputs, cotangent of each active input).
// Where nothing flows, zeros; vjp_values() tells which are absent.
// UserError not_supported through a loop of unknown length (while).
Graph vjp(const Graph& g, const std::vector<bool>& active);
Graph vjp(const Graph& g);  // every float input active

// Gradient of the first output, a float scalar.
// (inputs) -> (gradient of each active input)
Graph grad(const Graph& g, const std::vector<bool>& active);
Graph grad(const Graph& g);
// (inputs) -> (outputs, gradient of each active input)
Graph value_and_grad(const Graph& g, const std::vector<bool>& active);

}  // namespace braintrace
