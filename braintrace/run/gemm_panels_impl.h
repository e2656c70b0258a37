// SPDX-License-Identifier: Apache-2.0
// How gemm_kernels.cpp copies B into panels, and products that need no copy. Read once
// per instruction set, hence no #pragma once.
#if defined(BRAINTRACE_GEMM_PANELS) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAINTRACE_GEMM_PANELS
#undef BRAINTRACE_GEMM_PANELS
#else
#define BRAINTRACE_GEMM_PANELS
#endif

#include <algorithm>

#include <hwy/highway.h>

#include "braintrace/run/gemm_kernels_impl.h"
#include "braintrace/run/turn_impl.h"

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Full = hn::ScalableTag<T>;
template <class T>
std::int64_t lanes() {
  return static_cast<std::int64_t>(hn::Lanes(Full<T>()));
}

#if HWY_TARGET != HWY_SCALAR
// A panel of columns that lie along k, padded by zeros. Returns how many k are done.
template <class T>
std::int64_t turn_panel(const MatrixStrides& s, const T* b, std::int64_t count,
                        std::int64_t width, T* to) {
  constexpr std::int64_t kDown = kTurnedDown<T>, kAcross = kTurnedAcross<T>;
  const std::int64_t n = 2 * lanes<T>(), turned = width / kAcross * kAcross;
  const std::int64_t done = count / kDown * kDown;
  for (std::int64_t q = 0; q < done; q += kDown) {
    for (std::int64_t j = 0; j < turned; j += kAcross)
      turn(b + q + j * s.col, s.col, to + q * n + j, n);
    for (std::int64_t i = q; i < q + kDown && turned < n; ++i) {
      for (std::int64_t j = turned; j < width; ++j) to[i * n + j] = b[i + j * s.col];
      std::fill(to + i * n + width, to + (i + 1) * n, T(0));
    }
  }
  return done;
}
#else
template <class T>
std::int64_t turn_panel(const MatrixStrides&, const T*, std::int64_t, std::int64_t, T*) {
  return 0;
}
#endif

// `count` k of `width` columns of B as one panel, padded by zeros.
template <class T>
void pack_panel(const MatrixStrides& s, const T* b, std::int64_t count,
                std::int64_t width, T* to) {
  const std::int64_t n = 2 * lanes<T>();
  const Full<T> d;
  std::int64_t q = 0;
  if (s.row == 1) q = turn_panel(s, b, count, width, to);
  for (to += q * n; q < count; ++q, to += n) {
    const T* row = b + q * s.row;
    if (width == n && s.col == 1) {
      hn::StoreU(hn::LoadU(d, row), d, to);
      hn::StoreU(hn::LoadU(d, row + n / 2), d, to + n / 2);
      continue;
    }
    for (std::int64_t j = 0; j < width; ++j) to[j] = row[j * s.col];
    for (std::int64_t j = width; j < n; ++j) to[j] = T(0);
  }
}

// Several whole panels of rows with unit stride, row by row: as it lies in memory.
template <class T>
void pack_panels(const MatrixStrides& s, const T* b, std::int64_t count,
                 std::int64_t panels, T* to) {
  const std::int64_t n = 2 * lanes<T>();
  const Full<T> d;
  for (std::int64_t q = 0; q < count; ++q, to += n) {
    const T* row = b + q * s.row;
    for (std::int64_t p = 0; p < panels; ++p, row += n) {
      T* panel = to + p * count * n;
      hn::StoreU(hn::LoadU(d, row), d, panel);
      hn::StoreU(hn::LoadU(d, row + n / 2), d, panel + n / 2);
    }
  }
}

// Whole panels, then what is left of one.
template <class T>
void pack_columns(const MatrixStrides& s, const T* b, std::int64_t count,
                  std::int64_t columns, T* to) {
  const std::int64_t n = 2 * lanes<T>(), whole = columns / n;
  if (s.col == 1)
    pack_panels(s, b, count, whole, to);
  else
    for (std::int64_t p = 0; p < whole; ++p)
      pack_panel(s, b + p * n * s.col, count, n, to + p * count * n);
  if (whole * n < columns)
    pack_panel(s, b + whole * n * s.col, count, columns - whole * n,
               to + whole * count * n);
}

// One or two rows, and columns of B that lie along k: sums along k, lane by lane, instead
// of turning B.
constexpr std::int64_t kDotRows = 2;

#if HWY_TARGET != HWY_SCALAR
// Totals of as many vectors as there are numbers in a block of 16 bytes: every block of
// the result holds them, of the blocks at its place.
template <class D>
HWY_INLINE hn::Vec<D> totals_of_blocks(D d, const hn::Vec<D>* v) {
  const auto pair = [&](const hn::Vec<D>& a, const hn::Vec<D>& b) {
    return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return pair(v[0], v[1]);
  } else {
    const hn::Repartition<double, D> d64;
    const auto first = hn::BitCast(d64, pair(v[0], v[1]));
    const auto second = hn::BitCast(d64, pair(v[2], v[3]));
    return hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, first, second)),
                   hn::BitCast(d, hn::InterleaveUpper(d64, first, second)));
  }
}

// The total of each of as many vectors as one has lanes, in their order.
template <class D>
HWY_INLINE hn::Vec<D> totals(D d, const hn::Vec<D>* v) {
  constexpr std::size_t kBlocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 16;
  constexpr std::size_t kGroup = 16 / sizeof(hn::TFromD<D>);
  const auto group = [&](std::size_t i) { return totals_of_blocks(d, v + i * kGroup); };
  if constexpr (kBlocks == 1) {
    return group(0);
  } else {
    // Blocks of two groups, added by halves of a vector.
    const auto halves = [&](std::size_t low, std::size_t high) {
      const auto a = group(low), b = group(high);
      return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
    };
    if constexpr (kBlocks == 2) return halves(0, 1);
    const auto even = halves(0, 2), odd = halves(1, 3);
    return hn::OddEvenBlocks(hn::Add(odd, hn::SwapAdjacentBlocks(odd)),
                             hn::Add(even, hn::SwapAdjacentBlocks(even)));
  }
}
#endif

// Sums along k of MR rows and NJ columns, lane by lane; how many k are done.
template <class T, int MR, int NJ, class V>
HWY_INLINE std::int64_t dot_lanes(const TileProduct& p, const T* b, V* sum,
                                  std::int64_t row) {
  const Full<T> d;
  const auto* a = static_cast<const T*>(p.a);
  V own[MR][NJ];
  for (auto& line : own)
    for (V& v : line) v = hn::Zero(d);
  std::int64_t q = 0;
  for (; q + lanes<T>() <= p.k; q += lanes<T>())
    for (int j = 0; j < NJ; ++j) {
      const V right = hn::LoadU(d, b + j * p.b_strides.col + q);
      for (int i = 0; i < MR; ++i)
        own[i][j] =
            hn::MulAdd(hn::LoadU(d, a + i * p.a_strides.row + q), right, own[i][j]);
    }
  for (int i = 0; i < MR; ++i)
    for (int j = 0; j < NJ; ++j) sum[i * row + j] = own[i][j];
  return q;
}

// MR rows by NJ columns; sums of all lanes at once where there is one per lane.
template <class T, int MR, int NJ>
void dots(const TileProduct& p, std::int64_t column) {
  constexpr int kColumns = std::min(NJ, 8 / MR);  // whose places fit registers
  const Full<T> d;
  const auto *a = static_cast<const T*>(p.a), *b = static_cast<const T*>(p.b);
  b += column * p.b_strides.col;
  decltype(hn::Zero(d)) sum[MR * NJ];
  std::int64_t done = 0;
  for (int j = 0; j < NJ; j += kColumns)
    done = dot_lanes<T, MR, kColumns>(p, b + j * p.b_strides.col, sum + j, NJ);
  T total[MR * NJ];
#if HWY_TARGET != HWY_SCALAR
  if constexpr (MR * NJ == hn::MaxLanes(Full<T>()))
    hn::StoreU(totals(d, sum), d, total);
  else
#endif
    for (int i = 0; i < MR * NJ; ++i) total[i] = hn::GetLane(hn::SumOfLanes(d, sum[i]));
  for (int i = 0; i < MR; ++i) {
    T *own = total + i * NJ, *c = static_cast<T*>(p.c) + i * p.c_row + column;
    for (std::int64_t r = done; r < p.k; ++r)
      for (int j = 0; j < NJ; ++j)
        own[j] += a[i * p.a_strides.row + r] * b[j * p.b_strides.col + r];
    const T alpha = static_cast<T>(p.alpha), beta = static_cast<T>(p.beta);
    if (alpha != T(1))
      for (int j = 0; j < NJ; ++j) own[j] *= alpha;
    if (beta != T(0))
      for (int j = 0; j < NJ; ++j) own[j] += beta * c[j];
    if (p.bias != nullptr)
      for (int j = 0; j < NJ; ++j) own[j] += static_cast<const T*>(p.bias)[column + j];
    std::copy_n(own, NJ, c);
  }
}
template <class T>
bool is_dots(const TileProduct& p) {
  return p.m <= kDotRows && p.packed_panel == 0 && p.b_strides.row == 1 &&
         p.b_strides.col != 1 && p.a_strides.col == 1 && p.k >= 2 * lanes<T>();
}
template <class T>
void all_dots(const TileProduct& p) {
  constexpr int kTogether = HWY_TARGET == HWY_SCALAR ? 4 : hn::MaxLanes(Full<T>());
  std::int64_t j = 0;
  for (; j + kTogether / p.m <= p.n; j += kTogether / p.m)
    p.m == 1 ? dots<T, 1, kTogether>(p, j) : dots<T, 2, kTogether / 2>(p, j);
  for (; j < p.n; ++j) p.m == 1 ? dots<T, 1, 1>(p, j) : dots<T, 2, 1>(p, j);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();
#endif
