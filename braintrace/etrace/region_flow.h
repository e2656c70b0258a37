// SPDX-License-Identifier: Apache-2.0
#pragma once
// Position flow through the bodies of loops and branches.
#include "braintrace/etrace/position_flow.h"

namespace braintrace {

// As through(), for a scan, while or cond node: the body is followed, with feedback
// through its carries. nullopt when positions mix anywhere on the way, or nothing flows.
std::optional<Alignment> through_region(const Graph& g, const Node& n, std::size_t input,
                                        std::size_t output, const Alignment& in,
                                        const Shape& positions);

// Does the body apply a product to data that comes from this input?
bool region_mixes(const Node& n, std::size_t input);

}  // namespace braintrace
