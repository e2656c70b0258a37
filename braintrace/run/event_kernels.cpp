// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set. Sums run over k in order, fused, as in gemm.
#include <algorithm>
#include <bit>

#include "braintrace/run/event_kernels_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/event_kernels.cpp"
// clang-format off
#include "braintrace/array/simd_targets.h"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

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

// One bit per element that is not zero (a NaN is not), n at most 64.
template <class T>
HWY_INLINE std::uint64_t nonzero_bits(const T* a, std::int64_t n) {
  const Full<T> d;
  const std::int64_t step = lanes<T>();
  std::uint64_t bits = 0;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    std::uint8_t part[8] = {};
    hn::StoreMaskBits(d, hn::Not(hn::Eq(hn::LoadU(d, a + i), hn::Zero(d))), part);
    for (std::int64_t b = 0; 8 * b < step; ++b)
      bits |= std::uint64_t{part[b]} << (i + 8 * b);
  }
  for (; i < n; ++i) bits |= std::uint64_t{a[i] != T(0)} << i;
  return bits;
}

// Calls note(position) for every nonzero of a run of elements, in order.
template <class T, class F>
HWY_INLINE void each_nonzero(const T* a, std::int64_t n, const F& note) {
  for (std::int64_t i = 0; i < n; i += 64)
    for (std::uint64_t bits = nonzero_bits(a + i, std::min<std::int64_t>(64, n - i));
         bits != 0; bits &= bits - 1)
      note(i + std::countr_zero(bits));
}

// Elements that follow each other in memory are looked at together.
template <class T>
void list(const GemmSpec& s, const T* a, std::int64_t k, const EventLists& out) {
  std::fill_n(out.counts, s.m, std::uint16_t{0});
  bool ones = true;
  const auto note = [&](std::int64_t i, std::int64_t q) {
    out.places[i * kEventDepth + out.counts[i]++] = static_cast<std::uint16_t>(q);
    ones &= a[i * s.a.row + q * s.a.col] == T(1);
  };
  if (s.a.col == 1) {
    for (std::int64_t i = 0; i < s.m; ++i)
      each_nonzero(a + i * s.a.row, k, [&](std::int64_t q) { note(i, q); });
  } else if (s.a.row == 1) {
    for (std::int64_t q = 0; q < k; ++q)
      each_nonzero(a + q * s.a.col, s.m, [&](std::int64_t i) { note(i, q); });
  } else {
    for (std::int64_t q = 0; q < k; ++q)
      for (std::int64_t i = 0; i < s.m; ++i)
        if (a[i * s.a.row + q * s.a.col] != T(0)) note(i, q);
  }
  *out.all_ones = ones ? 1 : 0;
}

// What a sum starts from.
template <class T, class D>
HWY_INLINE auto start(D d, const EventProduct& p, const T* c, const T* bias) {
  if (!p.first) return hn::LoadU(d, c);
  auto v = hn::Zero(d);
  if (p.beta != 0) v = hn::Mul(hn::Set(d, static_cast<T>(p.beta)), hn::LoadU(d, c));
  return bias == nullptr ? v : hn::Add(v, hn::LoadU(d, bias));
}

// The block to come, on its way while this one is worked on: each of the m rows of A
// asks for its share of the lines.
class Ahead {
 public:
  Ahead(const EventProduct& p, std::size_t element)
      : at_(static_cast<const std::byte*>(p.next_b)),
        row_(p.b_row * static_cast<std::int64_t>(element)),
        lines_(kEventColumns * static_cast<std::int64_t>(element) / 64) {
    if (at_ == nullptr || p.m < kFewRows) return;
    left_ = kEventDepth * lines_;
    share_ = (left_ + p.m - 1) / p.m;
  }
  void fetch() {
    for (std::int64_t i = std::min(share_, left_); i > 0; --i, --left_) {
      __builtin_prefetch(at_ + 64 * line_);
      if (++line_ < lines_) continue;
      line_ = 0;
      at_ += row_;
    }
  }

 private:
  static constexpr std::int64_t kFewRows = 8;  // they do not read most of a block
  const std::byte* at_;
  std::int64_t row_, lines_, left_ = 0, share_ = 0, line_ = 0;
};

// NV vectors of all rows, from `column` on. D is a vector or a single element.
template <class T, class D, int NV, bool ones>
void columns(D d, const EventProduct& p, const EventLists& lists, std::int64_t column) {
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const T* b = static_cast<const T*>(p.b) + column;
  const T* bias = p.bias == nullptr ? nullptr : static_cast<const T*>(p.bias) + column;
  const T alpha = static_cast<T>(p.alpha);
  Ahead ahead(p, sizeof(T));
  for (std::int64_t i = 0; i < p.m; ++i) {
    if (column == 0) ahead.fetch();
    const T* a = static_cast<const T*>(p.a) + i * p.a_strides.row;
    T* c = static_cast<T*>(p.c) + i * p.c_row + column;
    const std::uint16_t* places = lists.places + i * kEventDepth;
    const std::int64_t count = lists.counts[i];
    if (count == 0 && !p.first) continue;
    using V = decltype(hn::Zero(d));
    V sum[NV];
    for (int v = 0; v < NV; ++v)
      sum[v] = start(d, p, c + v * n, bias == nullptr ? nullptr : bias + v * n);
    for (std::int64_t e = 0; e < count; ++e) {
      const std::int64_t q = places[e];
      const V left = hn::Set(d, ones ? alpha : alpha * a[q * p.a_strides.col]);
      const T* row = b + q * p.b_row;
      for (int v = 0; v < NV; ++v)
        sum[v] = hn::MulAdd(left, hn::LoadU(d, row + v * n), sum[v]);
    }
    for (int v = 0; v < NV; ++v) hn::StoreU(sum[v], d, c + v * n);
  }
}

template <class T, bool ones>
void add(const EventProduct& p, const EventLists& lists) {
  const Full<T> d;
  using One = hn::CappedTag<T, 1>;
  const std::int64_t n = lanes<T>();
  std::int64_t j = 0;
  for (; j + 8 * n <= p.columns; j += 8 * n) columns<T, Full<T>, 8, ones>(d, p, lists, j);
  for (; j + 2 * n <= p.columns; j += 2 * n) columns<T, Full<T>, 2, ones>(d, p, lists, j);
  for (; j + n <= p.columns; j += n) columns<T, Full<T>, 1, ones>(d, p, lists, j);
  for (; j < p.columns; ++j) columns<T, One, 1, ones>(One(), p, lists, j);
}

template <class T>
void add(const EventProduct& p, const EventLists& lists) {
  return *lists.all_ones != 0 ? add<T, true>(p, lists) : add<T, false>(p, lists);
}

}  // namespace

void list_events_f32(const GemmSpec& s, const void* a, std::int64_t k,
                     const EventLists& lists) {
  list(s, static_cast<const float*>(a), k, lists);
}
void list_events_f64(const GemmSpec& s, const void* a, std::int64_t k,
                     const EventLists& lists) {
  list(s, static_cast<const double*>(a), k, lists);
}
void add_events_f32(const EventProduct& p, const EventLists& lists) {
  add<float>(p, lists);
}
void add_events_f64(const EventProduct& p, const EventLists& lists) {
  add<double>(p, lists);
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(list_events_f32);
HWY_EXPORT(list_events_f64);
HWY_EXPORT(add_events_f32);
HWY_EXPORT(add_events_f64);

void list_events(DType dtype, const GemmSpec& s, const void* a, std::int64_t k,
                 const EventLists& lists) {
  if (dtype == DType::f32) return HWY_DYNAMIC_DISPATCH(list_events_f32)(s, a, k, lists);
  HWY_DYNAMIC_DISPATCH(list_events_f64)(s, a, k, lists);
}

void add_events(DType dtype, const EventProduct& p, const EventLists& lists) {
  if (dtype == DType::f32) return HWY_DYNAMIC_DISPATCH(add_events_f32)(p, lists);
  HWY_DYNAMIC_DISPATCH(add_events_f64)(p, lists);
}

}  // namespace braintrace
#endif
