// SPDX-License-Identifier: Apache-2.0
// Products of one tile of C, compiled once per instruction set. Every element of C is one
// chain of fused multiply-adds over k (cut every kDepth), whatever the tile, the layout
// or the kernel that computes it: tiles and threads do not change bits.
#include <algorithm>
#include <cstring>

#include "braintrace/run/gemm_kernels_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/gemm_kernels.cpp"
// clang-format off
#include "braintrace/array/simd_targets.h"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include "braintrace/run/gemm_panels_impl.h"

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Where a kernel finds its part of B: vectors come in pairs (panels).
template <class T>
struct Panels {
  const T* b;
  std::int64_t row;         // from one k to the next
  std::int64_t panel;       // from one pair of vectors to the next
  std::int64_t width = -1;  // of the only panel, when it is read as far as it goes
};

// Loads that do not touch what lies behind the end of a row.
constexpr bool kPartialLoads = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

// What becomes of the sums.
template <class T>
struct Finish {
  T alpha, beta;
  bool first;     // the first cut of k: beta and bias count
  const T* bias;  // or null

  bool is_store() const {
    return first && alpha == T(1) && beta == T(0) && bias == nullptr;
  }
};

template <class T, class D, class V>
HWY_INLINE V finished(D d, const Finish<T>& f, V sum, const T* c, const T* bias) {
  if (f.alpha != T(1)) sum = hn::Mul(hn::Set(d, f.alpha), sum);
  if (!f.first) return hn::Add(hn::LoadU(d, c), sum);
  if (f.beta != T(0)) sum = hn::Add(sum, hn::Mul(hn::Set(d, f.beta), hn::LoadU(d, c)));
  if (bias != nullptr) sum = hn::Add(sum, hn::LoadU(d, bias));
  return sum;
}

// MR rows by NV vectors of C; NV is even, or 1 for half a panel. `partial`: of B only
// b.width columns are there.
template <class T, int MR, int NV, bool partial = false>
void micro(std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_col,
           const Panels<T>& b, T* c, std::int64_t c_row, const Finish<T>& f) {
  const Full<T> d;
  const std::int64_t n = lanes<T>();
  using V = decltype(hn::Zero(d));
  V sum[MR][NV];
  for (int i = 0; i < MR; ++i)
    for (int v = 0; v < NV; ++v) sum[i][v] = hn::Zero(d);
  const T* row = b.b;
  const auto there = [&](int v) {
    return hn::FirstN(d, static_cast<std::size_t>(std::clamp(b.width - v * n, {}, n)));
  };
  const decltype(there(0)) first = there(0), second = there(1);
  for (std::int64_t q = 0; q < k; ++q, row += b.row) {
    V right[NV];
    for (int v = 0; v < NV; ++v)
      if constexpr (partial)
        right[v] = hn::MaskedLoad(v == 0 ? first : second, d, row + v * n);
      else
        right[v] = hn::LoadU(d, row + (v / 2) * b.panel + (v % 2) * n);
    for (int i = 0; i < MR; ++i) {
      const V left = hn::Set(d, a[i * a_row + q * a_col]);
      for (int v = 0; v < NV; ++v) sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
    }
  }
  if (f.is_store()) {
    for (int i = 0; i < MR; ++i)
      for (int v = 0; v < NV; ++v) hn::StoreU(sum[i][v], d, c + i * c_row + v * n);
    return;
  }
  for (int i = 0; i < MR; ++i)
    for (int v = 0; v < NV; ++v) {
      T* to = c + i * c_row + v * n;
      const T* bias = f.bias == nullptr ? nullptr : f.bias + v * n;
      hn::StoreU(finished(d, f, sum[i][v], to, bias), d, to);
    }
}

template <class T>
using Micro = void (*)(std::int64_t, const T*, std::int64_t, std::int64_t,
                       const Panels<T>&, T*, std::int64_t, const Finish<T>&);

// One panel wide, for 1 to 6 rows.
template <class T, bool partial = false>
Micro<T> narrow(std::int64_t rows) {
  constexpr Micro<T> kernels[] = {micro<T, 1, 2, partial>, micro<T, 2, 2, partial>,
                                  micro<T, 3, 2, partial>, micro<T, 4, 2, partial>,
                                  micro<T, 5, 2, partial>, micro<T, 6, 2, partial>};
  return kernels[rows - 1];
}

// Half a panel wide, for 1 to 8 rows: as many sums as hide the latency.
template <class T, bool partial = false>
Micro<T> half(std::int64_t rows) {
  constexpr Micro<T> kernels[] = {micro<T, 1, 1, partial>, micro<T, 2, 1, partial>,
                                  micro<T, 3, 1, partial>, micro<T, 4, 1, partial>,
                                  micro<T, 5, 1, partial>, micro<T, 6, 1, partial>,
                                  micro<T, 7, 1, partial>, micro<T, 8, 1, partial>};
  return kernels[rows - 1];
}

constexpr std::int64_t kRows = 6, kRowsOfHalf = 8;
// Panels of B that are copied together.
constexpr std::int64_t kPanels = HWY_MAX_BYTES <= 64 ? 4 : 1;
static_assert(kPanels * kDepth * 2 * HWY_MAX_BYTES <= kPanelScratch);
constexpr std::int64_t kAhead = 8;  // rows of A on their way while one is copied

// Few rows leave registers for more panels at a time, of those there are: enough sums to
// hide the latency.
std::int64_t wide_panels(std::int64_t rows, std::int64_t there) {
  if (rows == 1 && there >= 4) return 4;
  return rows <= 3 && there >= 2 ? 2 : 1;
}
template <class T>
Micro<T> wide(std::int64_t rows, std::int64_t panels) {
  constexpr Micro<T> kernels[] = {micro<T, 1, 4>, micro<T, 2, 4>, micro<T, 3, 4>};
  return panels == 4 ? micro<T, 1, 8> : kernels[rows - 1];
}

// A tile: C [m, n] with unit column stride, cut along k by the caller.
template <class T>
struct Tile {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t a_row, a_col, a_group;  // a_group: to the next group of rows
  T* c;
  std::int64_t c_row;
  Finish<T> f;
};

// Rows in nearly equal groups.
std::int64_t group_size(std::int64_t m, std::int64_t most = kRows) {
  if (m <= most) return std::max<std::int64_t>(m, 1);
  const std::int64_t groups = (m + most - 1) / most;
  return (m + groups - 1) / groups;
}

// Columns of the last, partial panel: through a full-width copy of C. Half a panel takes
// larger groups of rows, unless A is a copy in groups.
template <class T>
void edge_panel(const Tile<T>& t, const Panels<T>& b, std::int64_t column) {
  constexpr std::int64_t kMax = 2 * HWY_MAX_BYTES / sizeof(T);
  const std::int64_t width = t.n - column;
  T copy[kRowsOfHalf * kMax], bias[kMax] = {};
  Finish<T> f = t.f;
  if (f.bias != nullptr) {
    std::copy_n(f.bias + column, width, bias);
    f.bias = bias;
  }
  const bool in_groups = t.a_group != group_size(t.m) * t.a_row;
  const bool is_half = width <= lanes<T>() && !in_groups;
  const std::int64_t group = group_size(t.m, is_half ? kRowsOfHalf : kRows);
  const std::int64_t a_group = is_half ? group * t.a_row : t.a_group;
  for (std::int64_t i = 0; i < t.m; i += group) {
    const std::int64_t rows = std::min(group, t.m - i);
    T* c = t.c + i * t.c_row + column;
    const bool reads = !f.first || f.beta != T(0);
    if (reads) std::fill_n(copy, rows * kMax, T(0));
    for (std::int64_t r = 0; reads && r < rows; ++r)
      std::copy_n(c + r * t.c_row, width, copy + r * kMax);
    const bool partial = kPartialLoads && b.width >= 0;
    const Micro<T> kernel =
        is_half ? (partial ? half<T, kPartialLoads>(rows) : half<T>(rows))
                : (partial ? narrow<T, kPartialLoads>(rows) : narrow<T>(rows));
    kernel(t.k, t.a + i / group * a_group, t.a_row, t.a_col, b, copy, kMax, f);
    for (std::int64_t r = 0; r < rows; ++r)
      std::copy_n(copy + r * kMax, width, c + r * t.c_row);
  }
}

// `count` whole panels from `column` on.
template <class T>
void whole_panels(const Tile<T>& t, Panels<T> b, std::int64_t column,
                  std::int64_t count) {
  const std::int64_t width = 2 * lanes<T>();
  const std::int64_t group = group_size(t.m);
  for (std::int64_t p = 0; p < count;) {
    const std::int64_t step = wide_panels(t.m, count - p);
    Finish<T> f = t.f;
    if (f.bias != nullptr) f.bias += column;
    const T* a = t.a;
    for (std::int64_t i = 0; i < t.m; i += group, a += t.a_group) {
      const std::int64_t rows = std::min(group, t.m - i);
      const Micro<T> kernel = step > 1 ? wide<T>(rows, step) : narrow<T>(rows);
      kernel(t.k, a, t.a_row, t.a_col, b, t.c + i * t.c_row + column, t.c_row, f);
    }
    p += step;
    column += step * width;
    b.b += step * b.panel;
  }
}

template <class T>
void cut_of_k(const Tile<T>& t, const MatrixStrides& s, const T* b, bool packed,
              std::int64_t packed_panel, T* scratch) {
  const std::int64_t width = 2 * lanes<T>();
  const std::int64_t whole = t.n / width;
  if (packed) {
    whole_panels(t, {b, width, packed_panel}, 0, whole);
    if (whole * width < t.n)
      edge_panel(t, {b + whole * packed_panel, width, packed_panel}, whole * width);
    return;
  }
  // Few rows do not repay a copy of B, and one that is a panel itself needs none.
  const bool direct = s.col == 1 && (t.m <= kDirectRows || s.row == width);
  if (direct) whole_panels(t, {b, s.row, width}, 0, whole);
  std::int64_t p = direct ? whole : 0;
  for (; p < whole; p += kPanels) {
    const std::int64_t panels = std::min(kPanels, whole - p);
    pack_columns(s, b + p * width * s.col, t.k, panels * width, scratch);
    whole_panels(t, {scratch, width, t.k * width}, p * width, panels);
  }
  const std::int64_t rest = t.n - whole * width;
  if (rest == 0) return;
  if (direct && kPartialLoads && (t.m <= kRows || rest <= lanes<T>()))
    return edge_panel(t, {b + whole * width, s.row, width, rest}, whole * width);
  pack_panel(s, b + whole * width * s.col, t.k, rest, scratch);
  edge_panel(t, {scratch, width, width}, whole * width);
}

// A lies along its columns: its groups of rows one after the other, so that a kernel
// reads from few pages.
template <class T>
void pack_groups(Tile<T>& t, T* to) {
  const std::int64_t group = group_size(t.m);
  for (std::int64_t q = 0; q < t.k; ++q) {
    const T* from = t.a + q * t.a_col;
    for (std::int64_t i = 0; i < t.m; i += 64 / sizeof(T))
      __builtin_prefetch(from + kAhead * t.a_col + i);
    for (std::int64_t i = 0; i < t.m; i += group) {
      T* row = to + i * t.k + q * group;
      const std::int64_t rows = std::min(group, t.m - i);
      if (rows == kRows) {
        std::memcpy(row, from + i, kRows * sizeof(T));
        continue;
      }
      for (std::int64_t r = 0; r < rows; ++r) row[r] = from[i + r];
    }
  }
  t.a = to;
  t.a_col = group;
  t.a_group = group * t.k;
}

template <class T>
void tile_product(const TileProduct& p, std::byte* scratch) {
  if (is_dots<T>(p)) return all_dots<T>(p);
  const auto* a = static_cast<const T*>(p.a);
  const auto* b = static_cast<const T*>(p.b);
  T* panel = reinterpret_cast<T*>(scratch);
  const std::int64_t group = group_size(p.m);
  // Copies pay when the columns of C are many beside the cost of one.
  const bool turned = p.a_scratch && p.a_strides.row == 1 && p.a_strides.col != 1 &&
                      p.m > kRows && p.n >= 8 * lanes<T>();
  for (std::int64_t from = 0; from < p.k || from == 0; from += kDepth) {
    const MatrixStrides& as = p.a_strides;
    const Finish<T> f{static_cast<T>(p.alpha), static_cast<T>(p.beta), from == 0,
                      static_cast<const T*>(p.bias)};
    Tile<T> t{p.m, p.n, std::min(kDepth, p.k - from)};
    t.a = a + from * as.col;
    t.a_row = as.row, t.a_col = as.col, t.a_group = group * as.row;
    t.c = static_cast<T*>(p.c), t.c_row = p.c_row, t.f = f;
    if (turned) pack_groups(t, reinterpret_cast<T*>(p.a_scratch));
    if (p.packed_panel != 0) {
      cut_of_k(t, p.b_strides, b + from * 2 * lanes<T>(), true, p.packed_panel, panel);
    } else {
      cut_of_k(t, p.b_strides, b + from * p.b_strides.row, false, 0, panel);
    }
  }
}

}  // namespace

void tile_of(DType dtype, const TileProduct& p, std::byte* scratch) {
  dtype == DType::f32 ? tile_product<float>(p, scratch)
                      : tile_product<double>(p, scratch);
}
std::int64_t panel_of(DType dtype) {
  return 2 * (dtype == DType::f32 ? lanes<float>() : lanes<double>());
}
void pack_of(DType dtype, const MatrixStrides& s, const void* b, std::int64_t k,
             std::int64_t columns, void* to) {
  if (dtype == DType::f32)
    return pack_columns(s, static_cast<const float*>(b), k, columns,
                        static_cast<float*>(to));
  pack_columns(s, static_cast<const double*>(b), k, columns, static_cast<double*>(to));
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(tile_of);
HWY_EXPORT(panel_of);
HWY_EXPORT(pack_of);

void gemm_tile(DType dtype, const TileProduct& p, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(tile_of)(dtype, p, scratch);
}
std::int64_t gemm_panel(DType dtype) { return HWY_DYNAMIC_DISPATCH(panel_of)(dtype); }
void gemm_pack(DType dtype, const MatrixStrides& s, const void* b, std::int64_t k,
               std::int64_t columns, void* to) {
  HWY_DYNAMIC_DISPATCH(pack_of)(dtype, s, b, k, columns, to);
}

}  // namespace braintrace
#endif
