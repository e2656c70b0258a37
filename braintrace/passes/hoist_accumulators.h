// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns loops that add up into loops that hand out what they add, summed behind the loop:
// c' = c + f becomes c + sum of f. With split_scan and contract_sums a weight gradient
// that a loop adds up is one product over all its steps.
//   Needs: a verified graph.
//   Keeps: inputs, outputs, derivatives, values up to the order of sums.
//   Skips: carries the body reads anywhere else; integers; an f that is no product and
//          whose stack would take more than max_bytes.
#include "braintrace/ir/graph.h"

namespace braintrace {

struct HoistAccumulatorsOptions {
  std::int64_t max_bytes = std::int64_t{1} << 20;  // of each stack that stays one
};
Graph hoist_accumulators(const Graph& g, const HoistAccumulatorsOptions& options = {});

}  // namespace braintrace
