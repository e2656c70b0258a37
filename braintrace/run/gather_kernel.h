// SPDX-License-Identifier: Apache-2.0
#pragma once
// Slices picked by index along one axis.
#include <cstdint>
#include <string>

#include "braintrace/array/dtype.h"

namespace braintrace {

class ThreadPool;

// x is [outer, n, inner], indices [picks], y and updates [outer, picks, inner]; packed.
struct PickSpec {
  DType dtype = DType::f32;
  std::int64_t outer = 1, n = 0, picks = 0, inner = 1;
  std::string indices_of = "gather: index";  // what a refusal calls them
};

// y[o, j, :] = x[o, indices[j], :]. UserError when an index is outside [0, n).
void gather(const PickSpec& spec, const void* x, const std::int32_t* indices, void* y,
            ThreadPool& pool);

// y[o, indices[j], :] += updates[o, j, :], in the order of j. f32, f64 or i32. UserError
// when an index is outside [0, n); y is then unchanged.
void scatter_add(const PickSpec& spec, const std::int32_t* indices, const void* updates,
                 void* y, ThreadPool& pool);

}  // namespace braintrace
