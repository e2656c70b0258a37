// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/gemm.h"

#include <cstring>
#include <type_traits>

#include "braintrace/base/error.h"
#include "braintrace/run/gemm_impl.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

template <class T>
using Wrapping = std::conditional_t<std::is_same_v<T, std::int32_t>, std::uint32_t, T>;

template <class T>
void multiply(const GemmSpec& s, const T* a, const T* b, T* c, const T* bias) {
  using W = Wrapping<T>;
  const W alpha = static_cast<W>(static_cast<T>(s.alpha));
  const W beta = static_cast<W>(static_cast<T>(s.beta));
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      W sum = 0;
      for (std::int64_t q = 0; q < s.k; ++q)
        sum += static_cast<W>(a[i * s.a.row + q * s.a.col]) *
               static_cast<W>(b[q * s.b.row + j * s.b.col]);
      T& to = c[i * s.c.row + j * s.c.col];
      W y = alpha * sum;
      if (s.beta != 0) y += beta * static_cast<W>(to);
      if (bias != nullptr) y += static_cast<W>(bias[j]);
      to = static_cast<T>(y);
    }
  }
}

}  // namespace

void gemm_serial(const GemmSpec& s, const void* a, const void* b, void* c,
                 const void* bias, std::byte*) {
  visit_dtype(s.dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>)
      multiply(s, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c),
               static_cast<const T*>(bias));
  });
}

void gemm(const GemmSpec& s, const void* a, const void* b, void* c, ThreadPool& pool,
          const void* bias) {
  BT_INVARIANT(s.dtype != DType::boolean && is_computable(s.dtype));
  const bool shared = gemm_ns(s) > kSharedWork;
  pool.for_tiles_if(shared, s.batch, [&](std::int64_t i, int) {
    visit_dtype(s.dtype, [&]<class T>(T) {
      if constexpr (!std::is_same_v<T, bool>)
        multiply(s, static_cast<const T*>(a) + i * s.a.batch,
                 static_cast<const T*>(b) + i * s.b.batch,
                 static_cast<T*>(c) + i * s.c.batch, static_cast<const T*>(bias));
    });
  });
}

std::size_t packed_b_bytes(const GemmSpec& s) {
  return static_cast<std::size_t>(s.k * s.n) * size_of(s.dtype);
}

void pack_b(const GemmSpec& s, const void* b, void* packed) {
  const std::size_t size = size_of(s.dtype);
  const auto* from = static_cast<const std::byte*>(b);
  auto* to = static_cast<std::byte*>(packed);
  for (std::int64_t i = 0; i < s.k; ++i)
    for (std::int64_t j = 0; j < s.n; ++j, to += size)
      std::memcpy(to, from + (i * s.b.row + j * s.b.col) * static_cast<long>(size), size);
}

void gemm_packed(const GemmSpec& spec, const void* a, const void* packed, void* c,
                 ThreadPool& pool, const void* bias) {
  GemmSpec s = spec;
  s.b = {s.n, 1, 0};
  gemm(s, a, packed, c, pool, bias);
}

double gemm_ns(const GemmSpec& s) {
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) *
                       static_cast<double>(s.k) * static_cast<double>(s.batch);
  return flops / (s.dtype == DType::f32 ? 60.0 : s.dtype == DType::f64 ? 30.0 : 2.0);
}

}  // namespace braintrace
