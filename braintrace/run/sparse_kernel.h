// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products with fixed sparse connectivity.
#include <cstdint>
#include <vector>

#include "braintrace/array/dtype.h"
#include "braintrace/array/index_list.h"

namespace braintrace {

class ThreadPool;

// y[l, cols[p]] = bias[cols[p]] + sum over p of x[l, rows[p]] * w[p].
class SparseKernel {
 public:
  // x is [lead, n_in], y is [lead, n_out]; f32 or f64. The lists are shared, not copied,
  // when one of them is sorted. InternalError when an index is out of range or n_in,
  // n_out or the number of connections pass 2^31.
  SparseKernel(DType dtype, std::int64_t lead, std::int64_t n_in, std::int64_t n_out,
               const IndexList& rows, const IndexList& cols);

  // Packed arrays; `bias` has n_out elements or is null. Connections of one output are
  // added in their order (sorted by row if neither list is sorted), in the elements' own
  // type: bit-identical at any number of threads. Unless only `cols` is sorted, inputs
  // that are 0 are skipped, so these zeros do not meet infinities. Does not allocate.
  void run(const void* x, const void* w, const void* bias, void* y,
           ThreadPool& pool) const;

 private:
  template <class T>
  void run_as(const T* x, const T* w, const T* bias, T* y, ThreadPool& pool) const;
  template <class T>
  void push(const T* x, const T* w, const T* bias, T* y) const;
  template <class T>
  void pull(const T* x, const T* w, const T* bias, T* y, std::int64_t block) const;

  DType dtype_;
  std::int64_t lead_, n_in_, n_out_;
  bool pulls_ = false;  // by output: connections start_[o] .. start_[o + 1) enter it
  // Else by input: order_[start_[i] .. start_[i + 1]) leave it. `order_` is empty when
  // the connections are sorted by row already.
  std::vector<std::int32_t> start_, order_;
  IndexList other_;  // the end of a connection that `start_` does not give
};

// w[p] = sum over l of x[l, rows[p]] * y[l, cols[p]]; `adds`: on top of what is there.
class SparseOuterKernel {
 public:
  SparseOuterKernel(DType dtype, std::int64_t lead, std::int64_t n_x, std::int64_t n_y,
                    const IndexList& rows, const IndexList& cols);
  void add_to_result() { adds_ = true; }
  bool adds() const { return adds_; }

  // Bit-identical at any number of threads. With sorted rows, zeros of x are skipped.
  // Does not allocate.
  void run(const void* x, const void* y, void* w, ThreadPool& pool) const;

 private:
  template <class T>
  void run_as(const T* x, const T* y, T* w, ThreadPool& pool) const;
  template <class T>
  void by_row(const T* x, const T* y, T* w, std::int64_t first, std::int64_t last) const;

  DType dtype_;
  std::int64_t lead_, n_x_, n_y_;
  IndexList rows_, cols_;
  std::vector<std::int32_t> start_;  // by row, when sorted
  bool adds_ = false;
};

}  // namespace braintrace
