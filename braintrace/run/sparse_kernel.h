// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products with fixed sparse connectivity.
#include <cstdint>
#include <vector>

#include "braintrace/array/dtype.h"
#include "braintrace/array/shape.h"

namespace braintrace {

class ThreadPool;

// y[l, cols[p]] = bias[cols[p]] + sum over p of x[l, rows[p]] * w[p].
class SparseKernel {
 public:
  // x is [lead, n_in], y is [lead, n_out]; f32 or f64. InternalError when an index is out
  // of range or n_in, n_out or the number of connections pass 2^31.
  SparseKernel(DType dtype, std::int64_t lead, std::int64_t n_in, std::int64_t n_out,
               const Ints& rows, const Ints& cols);

  // Packed arrays; `bias` has n_out elements or is null. Connections of one output are
  // added row by row, in the elements' own type: bit-identical at any number of threads.
  // Inputs that are 0 are skipped, so zeros do not meet infinities. Does not allocate.
  void run(const void* x, const void* w, const void* bias, void* y,
           ThreadPool& pool) const;

 private:
  template <class T>
  void run_as(const T* x, const T* w, const T* bias, T* y, ThreadPool& pool) const;

  DType dtype_;
  std::int64_t lead_, n_in_, n_out_;
  // By row: connections order_[start_[i] .. start_[i + 1]) leave input i. `order_` is
  // empty when the connections are sorted by row already.
  std::vector<std::int32_t> start_, col_, order_;
};

}  // namespace braintrace
