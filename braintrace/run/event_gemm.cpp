// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/event_gemm.h"

#include <algorithm>

#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

template <class T>
std::int64_t nonzeros(const GemmSpec& s, const T* a) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t q = 0; q < s.k; ++q)
      count += a[i * s.a.row + q * s.a.col] != T(0) ? 1 : 0;
  return count;
}

// One row of C: rows of B for the nonzeros of a row of A, in their order.
template <class T>
void add_events(const GemmSpec& s, const T* a, const T* b, T* c, const T* bias) {
  const T alpha = static_cast<T>(s.alpha), beta = static_cast<T>(s.beta);
  for (std::int64_t j = 0; j < s.n; ++j) {
    const T before = s.beta == 0 ? T(0) : beta * c[j];
    c[j] = bias == nullptr ? before : before + bias[j];
  }
  for (std::int64_t q = 0; q < s.k; ++q) {
    const T v = a[q * s.a.col];
    if (v == T(0)) continue;
    const T scale = alpha * v;
    const T* row = b + q * s.b.row;
    for (std::int64_t j = 0; j < s.n; ++j) c[j] += scale * row[j];
  }
}

template <class T>
bool run_events(const GemmSpec& s, const T* a, const T* b, T* c, ThreadPool& pool,
                const T* bias) {
  const auto found = static_cast<double>(nonzeros(s, a));
  if (found > kEventDensity * static_cast<double>(s.m * s.k)) return false;
  const double work = 0.1 * found * static_cast<double>(s.n);
  pool.for_tiles_if(work > kSharedWork, s.m, [&](std::int64_t i, int) {
    add_events(s, a + i * s.a.row, b, c + i * s.c.row, bias);
  });
  return true;
}

}  // namespace

void gemm_events(const GemmSpec& s, const void* a, const void* b, void* c,
                 ThreadPool& pool, const void* bias) {
  const bool fits = s.batch == 1 && s.b.col == 1 && s.c.col == 1;
  if (fits && s.dtype == DType::f32 &&
      run_events(s, static_cast<const float*>(a), static_cast<const float*>(b),
                 static_cast<float*>(c), pool, static_cast<const float*>(bias)))
    return;
  if (fits && s.dtype == DType::f64 &&
      run_events(s, static_cast<const double*>(a), static_cast<const double*>(b),
                 static_cast<double*>(c), pool, static_cast<const double*>(bias)))
    return;
  gemm(s, a, b, c, pool, bias);
}

}  // namespace braintrace
