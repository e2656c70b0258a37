// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/gather_kernel.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

void check_indices(std::string_view what, const PickSpec& s,
                   const std::int32_t* indices) {
  for (std::int64_t j = 0; j < s.picks; ++j)
    BT_REQUIRE(indices[j] >= 0 && indices[j] < s.n,
               fmt::format("{} {} is outside [0, {})", what, indices[j], s.n));
}

constexpr double kBytesPerNs = 10;

template <class T, class Acc>
void add_rows(const PickSpec& s, const std::int32_t* indices, const T* u, T* y) {
  for (std::int64_t j = 0; j < s.picks; ++j) {
    T* to = y + indices[j] * s.inner;
    const T* from = u + j * s.inner;
    for (std::int64_t i = 0; i < s.inner; ++i)
      to[i] = static_cast<T>(static_cast<Acc>(to[i]) + static_cast<Acc>(from[i]));
  }
}

template <class T, class Acc>
void scatter_as(const PickSpec& s, const std::int32_t* indices, const void* updates,
                void* y, ThreadPool& pool) {
  const double bytes =
      static_cast<double>(s.outer * s.picks * s.inner) * static_cast<double>(sizeof(T));
  pool.for_tiles_if(
      2 * bytes / kBytesPerNs > kSharedWork, s.outer, [&](std::int64_t o, int) {
        add_rows<T, Acc>(s, indices,
                         static_cast<const T*>(updates) + o * s.picks * s.inner,
                         static_cast<T*>(y) + o * s.n * s.inner);
      });
}

}  // namespace

void gather(const PickSpec& s, const void* x, const std::int32_t* indices, void* y,
            ThreadPool& pool) {
  check_indices(s.indices_of, s, indices);
  const std::size_t row = static_cast<std::size_t>(s.inner) * size_of(s.dtype);
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  const double bytes = static_cast<double>(s.outer * s.picks) * static_cast<double>(row);
  constexpr std::int64_t kPicks = 256;
  const std::int64_t per_outer = (s.picks + kPicks - 1) / kPicks;
  pool.for_tiles_if(
      bytes / kBytesPerNs > kSharedWork, s.outer * per_outer, [&](std::int64_t t, int) {
        const std::int64_t o = t / per_outer, first = t % per_outer * kPicks;
        const std::int64_t last = std::min(s.picks, first + kPicks);
        for (std::int64_t j = first; j < last; ++j)
          std::memcpy(to + static_cast<std::size_t>(o * s.picks + j) * row,
                      from + static_cast<std::size_t>(o * s.n + indices[j]) * row, row);
      });
}

void scatter_add(const PickSpec& s, const std::int32_t* indices, const void* updates,
                 void* y, ThreadPool& pool) {
  check_indices("scatter_add: index", s, indices);
  if (s.dtype == DType::f32)
    return scatter_as<float, float>(s, indices, updates, y, pool);
  if (s.dtype == DType::f64)
    return scatter_as<double, double>(s, indices, updates, y, pool);
  BT_INVARIANT(s.dtype == DType::i32);
  scatter_as<std::int32_t, std::uint32_t>(s, indices, updates, y, pool);
}

}  // namespace braintrace
