// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dense products: C = alpha A B + beta C + bias, for one matrix or a batch of them.
#include <cstddef>
#include <cstdint>

#include "braintrace/array/dtype.h"

namespace braintrace {

class ThreadPool;

// Element (i, j) of matrix b lies at b * batch + i * row + j * col (in elements). Any
// strides work; a unit row or column stride is fast.
struct MatrixStrides {
  std::int64_t row = 0, col = 1, batch = 0;
};

struct GemmSpec {
  DType dtype = DType::f32;  // f32, f64 or i32 (wraps around)
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  MatrixStrides a, b, c;       // A is m x k, B is k x n, C is m x n
  double alpha = 1, beta = 0;  // beta = 0 does not read C
};

// `bias` (or null) is a packed row of n elements added to every row of C. C must not
// overlap the others. Work is cut by shape alone and k never is: the same bits at any
// number of threads. Does not allocate.
void gemm(const GemmSpec& spec, const void* a, const void* b, void* c, ThreadPool& pool,
          const void* bias = nullptr);

// B laid out as the kernels read it, for use with many A: about a third faster for few
// rows. Needs one matrix B: batch 1, or batch stride 0 in B. The result is bitwise that
// of gemm, but for one or two rows and columns of B that lie along k. 0 bytes: there is
// no packed form (integers, a column stride in C, nothing to sum). Columns from j on,
// where j is a multiple of gemm_panel (gemm_kernels_impl.h), lie from element j * k on.
std::size_t packed_b_bytes(const GemmSpec& spec);
void pack_b(const GemmSpec& spec, const void* b, void* packed, ThreadPool& pool);
void gemm_packed(const GemmSpec& spec, const void* a, const void* packed, void* c,
                 ThreadPool& pool, const void* bias = nullptr);

// Rough time on one thread.
double gemm_ns(const GemmSpec& spec);

}  // namespace braintrace
