// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which values may be mostly zero: spikes, and what is made of them. A guess that only
// decides where a product counts the zeros before it chooses its way.
#include <vector>

#include "braintrace/ir/graph.h"
#include "braintrace/ir/lowering.h"

namespace braintrace::plan {

// By value of g, given the same about its inputs (by position).
std::vector<bool> spiking_values(const Graph& g, const std::vector<bool>& inputs);

// About the inputs of a loop's body, given the same about the inputs of the loop.
std::vector<bool> spiking_in_body(const lowering::Scan& l,
                                  const std::vector<bool>& inputs);

}  // namespace braintrace::plan
