// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values that repeat along an axis are computed once per repetition and stretched where
// somebody needs all of them.
#include <span>

#include "braintrace/ir/graph.h"

namespace braintrace {

// Rewrites values of at least so many elements: small ones cost less than a kernel of
// their own.
//   Keeps: inputs, outputs, and their bits.
Graph narrow_uniform(const Graph& g, std::int64_t least = 1 << 15);

// The shapes these values need: size 1 along axes they repeat along, when each input does
// as `inputs` says (its own shape: nothing known).
std::vector<Shape> uniform_shapes(const Graph& g, const std::vector<Shape>& inputs,
                                  std::span<const ValueId> values);

}  // namespace braintrace
