// SPDX-License-Identifier: Apache-2.0
#pragma once
// A vector that meets the leading axes of a large value which is gone through anyway:
//   dot(s, t), t = d e, e' = t + u  ->  sum of s t over the leading axes
// The executor moves e and sums in the same pass, so what is large is read once.
//   Needs: a verified graph that will only be run.
//   Keeps: inputs, outputs, values up to the order of sums.
//   Skips: products of two values with axes of their own, values that no elementwise node
//          makes for another one, short rows, small values.
// Leaves the nodes it replaced to dce.
#include "braintrace/ir/graph.h"

namespace braintrace {

struct MeetInPassingOptions {
  std::int64_t min_size = 1 << 14;  // of the large value
  std::int64_t min_row = 8;         // of its last axis
  std::int64_t min_left = 128;      // of what is left of it
};
Graph meet_in_passing(const Graph& g, const MeetInPassingOptions& options = {});

}  // namespace braintrace
