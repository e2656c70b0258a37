// SPDX-License-Identifier: Apache-2.0
#pragma once
// Full Jacobians, one lane per column (forward) or per row (reverse).
#include "braintrace/ir/graph.h"

namespace braintrace {

enum class JacobianMode { smaller, forward, reverse };  // smaller: fewer lanes

struct JacobianOptions {
  std::size_t output = 0;  // which output of g
  std::size_t input = 0;   // by which input
  JacobianMode mode = JacobianMode::smaller;
};
// (inputs) -> d output / d input with shape output.shape + input.shape. Both must be
// floats.
Graph jacobian(const Graph& g, const JacobianOptions& options = {});

}  // namespace braintrace
