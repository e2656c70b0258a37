// SPDX-License-Identifier: Apache-2.0
#pragma once
// One program on many lanes at once.
#include "braintrace/ops/batch.h"

namespace braintrace {

struct VmapOptions {
  std::vector<BatchAxis> in_axes = {};      // empty: axis 0 of every input
  std::vector<std::int64_t> out_axes = {};  // empty: axis 0 of every output
};
// Batched inputs gain an axis of `size` at their in_axes place, all outputs at their
// out_axes place. Negative axes count from the end of the batched shape.
Graph vmap(const Graph& g, std::int64_t size, const VmapOptions& options = {});

}  // namespace braintrace
