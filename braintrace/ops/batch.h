// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a program on many lanes at once: every value may carry one batch axis. Driven by
// OpDef::batch; element-wise ops without a rule get a derived one.
#include <span>

#include "braintrace/ir/op_def.h"
#include "braintrace/ops/axis.h"
#include "braintrace/ops/ops.h"

namespace braintrace {

// The size of the batch axis. UserError when the batched values disagree or none is
// batched.
std::int64_t batch_size(std::span<const Value> values, std::span<const BatchAxis> axes);

// The batch axis in front; an unbatched value is stretched to `size` lanes.
Value batch_in_front(const Value& v, BatchAxis axis, std::int64_t size);

// [n] -> [n, 1, ..., 1]: one number per lane, ready to meet a value of this rank.
Value lanes_of_rank(const Value& lanes, std::int64_t rank);

// One use of an op. Axes count from 0, one per input. An op none of whose inputs is
// batched is emitted as it is.
BatchResult batch_node(const Site& s, std::span<const BatchAxis> axes);

// A whole program; values and axes of its outputs.
BatchResult batch_graph(const Graph& g, std::span<const Value> inputs,
                        std::span<const BatchAxis> axes);

}  // namespace braintrace
