// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns a linear program around.
#include "braintrace/ops/calculus.h"

namespace braintrace {

// Needs: g linear in the marked inputs.
// (unmarked inputs, cotangent of each output) -> (cotangent of each marked input); where
// nothing flows, zeros. transpose_values() tells which are absent.
Graph transpose_linear(const Graph& g, const std::vector<bool>& linear);

}  // namespace braintrace
