// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set. Sums run over k in order, fused, as in gemm.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

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

// One bit per element that is not zero (a NaN is not), n at most 64. `ones` stays when
// all of them are 1.
template <class T>
HWY_INLINE std::uint64_t nonzero_bits(const T* a, std::int64_t n, bool& ones) {
  const Full<T> d;
  const auto one = hn::Set(d, T(1));
  const std::int64_t step = lanes<T>();
  std::uint64_t bits = 0;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    std::uint8_t part[8] = {};
    const auto v = hn::LoadU(d, a + i);
    const auto zero = hn::Eq(v, hn::Zero(d));
    hn::StoreMaskBits(d, hn::Not(zero), part);
    ones &= hn::AllTrue(d, hn::Or(zero, hn::Eq(v, one)));
    for (std::int64_t b = 0; 8 * b < step; ++b)
      bits |= std::uint64_t{part[b]} << (i + 8 * b);
  }
  for (; i < n; ++i) {
    bits |= std::uint64_t{a[i] != T(0)} << i;
    ones &= a[i] == T(0) || a[i] == T(1);
  }
  return bits;
}

// Eight bits at a time: which of them are set, one place per byte.
struct PlacesOfBits {
  std::uint8_t of[256][8] = {};
  constexpr PlacesOfBits() {
    for (int bits = 0; bits < 256; ++bits)
      for (int b = 0, n = 0; b < 8; ++b)
        if ((bits >> b & 1) != 0) of[bits][n++] = static_cast<std::uint8_t>(b);
  }
};
constexpr PlacesOfBits kPlaces;

// Writes eight bytes at a time, those behind the last place included; never more than a
// full row takes.
HWY_INLINE std::uint8_t* note_places(std::uint64_t bits, std::uint8_t* to) {
  for (std::uint64_t first = 0; bits != 0; bits >>= 8, first += 0x0808080808080808) {
    std::uint64_t places;
    std::memcpy(&places, kPlaces.of[bits & 255], sizeof places);
    places += first;
    std::memcpy(to, &places, sizeof places);
    to += std::popcount(bits & 255);
  }
  return to;
}

// Bit j of word i becomes bit i of word j, in ever smaller squares.
void turn_square(std::uint64_t* words) {
  std::uint64_t mask = 0x00000000FFFFFFFF;
  for (int half = 32; half > 0; half /= 2, mask ^= mask << half)
    for (int block = 0; block < 64; block += 2 * half)
      for (int i = block; i < block + half; ++i) {
        const std::uint64_t other = ((words[i] >> half) ^ words[i + half]) & mask;
        words[i] ^= other << half;
        words[i + half] ^= other;
      }
}

// A lies along its columns: the bits of its rows, from those of its columns.
template <class T>
bool turn_bits(const GemmSpec& s, const T* a, std::int64_t k, std::uint64_t* rows) {
  static_assert(kEventDepth == 64);
  bool ones = true;
  for (std::int64_t i = 0; i < s.m; i += 64) {
    const std::int64_t count = std::min<std::int64_t>(64, s.m - i);
    std::uint64_t square[64] = {};
    for (std::int64_t q = 0; q < k; ++q)
      square[q] = nonzero_bits(a + q * s.a.col + i, count, ones);
    turn_square(square);
    std::copy_n(square, count, rows + i);
  }
  return ones;
}

// Places of a row's nonzeros, from 0 on. Whole vectors of them are written, those behind
// the last place included, but never more than a full row takes.
template <class T, class Place>
HWY_INLINE Place* note_row(const T* a, std::int64_t k, Place* to, bool& all_ones) {
  const Full<T> d;
  const hn::RebindToUnsigned<Full<T>> whole;
  const hn::Rebind<Place, Full<T>> narrow;
  const auto zero = hn::Zero(d), one = hn::Set(d, T(1));
  const auto step = hn::Set(whole, static_cast<hn::TFromD<decltype(whole)>>(lanes<T>()));
  auto places = hn::Iota(whole, 0);
  auto ones = hn::Eq(zero, zero);
  std::int64_t q = 0;
  for (; q + lanes<T>() <= k; q += lanes<T>(), places = hn::Add(places, step)) {
    const auto v = hn::LoadU(d, a + q);
    const auto is_zero = hn::Eq(v, zero);
    ones = hn::And(ones, hn::Or(is_zero, hn::Eq(v, one)));
    const auto there = hn::Not(is_zero);
    const auto found = hn::Compress(places, hn::RebindMask(whole, there));
    if constexpr (sizeof(T) == sizeof(Place))
      hn::StoreU(found, narrow, to);
    else
      hn::StoreU(hn::TruncateTo(narrow, found), narrow, to);
    to += hn::CountTrue(d, there);
  }
  all_ones &= hn::AllTrue(d, ones);
  for (; q < k; ++q) {
    if (a[q] == T(0)) continue;
    *to++ = static_cast<Place>(q);
    all_ones &= a[q] == T(1);
  }
  return to;
}

template <class T>
void list_row(const T* a, std::int64_t k, std::int64_t row, const EventRows& out) {
  static_assert(hn::MaxLanes(Full<T>()) <= static_cast<std::size_t>(kEventRowSlack));
  std::uint32_t* const begin = out.places + row * out.room;
  bool ones = true;
  out.counts[row] = static_cast<std::uint32_t>(note_row(a, k, begin, ones) - begin);
  out.all_ones[row] = ones ? 1 : 0;
}

// Elements that follow each other in memory are looked at together.
template <class T>
void list(const GemmSpec& s, const T* a, std::int64_t k, const EventLists& out) {
  std::uint8_t* to = out.places;
  const bool by_columns = s.a.col != 1 && s.a.row == 1;
  bool ones = !by_columns || turn_bits(s, a, k, out.bits);
  for (std::int64_t i = 0; i < s.m; ++i) {
    const std::uint8_t* begin = to;
    const T* row = a + i * s.a.row;
    if (by_columns) {
      to = note_places(out.bits[i], to);
    } else if (s.a.col == 1) {
      to = note_row(row, k, to, ones);
    } else {
      for (std::int64_t q = 0; q < k; ++q) {
        if (row[q * s.a.col] == T(0)) continue;
        *to++ = static_cast<std::uint8_t>(q);
        ones &= row[q * s.a.col] == T(1);
      }
    }
    out.counts[i] = static_cast<std::uint8_t>(to - begin);
  }
  *out.all_ones = ones ? 1 : 0;
}

// Rows of events, one after the other.
struct CutWalk {
  const EventLists& lists;
  const std::uint8_t* places = lists.places;
  std::int64_t count(std::int64_t i) const { return lists.counts[i]; }
  void go_on(std::int64_t i) { places += lists.counts[i]; }
};
struct RowWalk {
  const EventRows& rows;
  const std::uint32_t* places = rows.places;
  std::int64_t count(std::int64_t i) const { return rows.counts[i]; }
  void go_on(std::int64_t) { places += rows.room; }
};

// What a sum starts from.
template <class T, class D>
HWY_INLINE auto start(D d, const EventProduct& p, const T* c, const T* bias) {
  if (!p.first) return hn::LoadU(d, c);
  auto v = hn::Zero(d);
  if (p.beta != 0) v = hn::Mul(hn::Set(d, static_cast<T>(p.beta)), hn::LoadU(d, c));
  return bias == nullptr ? v : hn::Add(v, hn::LoadU(d, bias));
}

// All columns of all rows in NV vectors: the last one ends with the columns and may
// overlap the one before. D is a vector or a single element.
template <class T, class D, int NV, bool ones, class Walk>
void columns(D d, const EventProduct& p, Walk events) {
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto at = [&](int v) { return v + 1 < NV ? v * n : p.columns - n; };
  const T* b = static_cast<const T*>(p.b);
  const T* bias = static_cast<const T*>(p.bias);
  const T alpha = static_cast<T>(p.alpha);
  for (std::int64_t i = 0; i < p.m; events.go_on(i++)) {
    const T* a = static_cast<const T*>(p.a) + i * p.a_strides.row;
    T* c = static_cast<T*>(p.c) + i * p.c_row;
    const std::int64_t count = events.count(i);
    const auto* places = events.places;
    if (count == 0 && !p.first) continue;
    using V = decltype(hn::Zero(d));
    V sum[NV];
    for (int v = 0; v < NV; ++v)
      sum[v] = start(d, p, c + at(v), bias == nullptr ? nullptr : bias + at(v));
    for (std::int64_t e = 0; e < count; ++e) {
      const std::int64_t q = places[e];
      const T* row = b + q * p.b_row;
      if constexpr (ones) {  // as a fused multiplication by 1 rounds
        for (int v = 0; v < NV; ++v) sum[v] = hn::Add(hn::LoadU(d, row + at(v)), sum[v]);
        continue;
      }
      const V left = hn::Set(d, alpha * a[q * p.a_strides.col]);
      for (int v = 0; v < NV; ++v)
        sum[v] = hn::MulAdd(left, hn::LoadU(d, row + at(v)), sum[v]);
    }
    for (int v = 0; v < NV; ++v) hn::StoreU(sum[v], d, c + at(v));
  }
}

// Fewer columns than a vector has elements: one by one.
template <class T, bool ones, class Walk>
void single_columns(EventProduct p, Walk events) {
  const hn::CappedTag<T, 1> one;
  const std::int64_t count = std::exchange(p.columns, 1);
  for (std::int64_t j = 0; j < count; ++j) {
    columns<T, decltype(one), 1, ones>(one, p, events);
    p.b = static_cast<const T*>(p.b) + 1;
    p.c = static_cast<T*>(p.c) + 1;
    if (p.bias != nullptr) p.bias = static_cast<const T*>(p.bias) + 1;
  }
}

template <class T, bool ones, class Walk>
void add(const EventProduct& p, Walk events) {
  using D = Full<T>;
  const D d;
  switch ((p.columns + lanes<T>() - 1) / lanes<T>()) {
    case 1:
      if (p.columns < lanes<T>()) return single_columns<T, ones>(p, events);
      return columns<T, D, 1, ones>(d, p, events);
    case 2:
      return columns<T, D, 2, ones>(d, p, events);
    case 3:
      return columns<T, D, 3, ones>(d, p, events);
    case 4:
      return columns<T, D, 4, ones>(d, p, events);
    case 5:
      return columns<T, D, 5, ones>(d, p, events);
    case 6:
      return columns<T, D, 6, ones>(d, p, events);
    case 7:
      return columns<T, D, 7, ones>(d, p, events);
    default:
      return columns<T, D, 8, ones>(d, p, events);
  }
}

template <class T, class Walk>
void add(const EventProduct& p, bool all_ones, const Walk& events) {
  return all_ones && p.alpha == 1 ? add<T, true>(p, events) : add<T, false>(p, events);
}
template <class T>
void add_cut(const EventProduct& p, const EventLists& lists) {
  add<T>(p, *lists.all_ones != 0, CutWalk{lists});
}
template <class T>
void add_rows(const EventProduct& p, const EventRows& rows) {
  add<T>(
      p,
      std::all_of(rows.all_ones, rows.all_ones + p.m, [](auto one) { return one != 0; }),
      RowWalk{rows});
}

}  // namespace

std::int64_t event_columns_f32() { return kEventVectors * lanes<float>(); }
std::int64_t event_columns_f64() { return kEventVectors * lanes<double>(); }
void list_events_f32(const GemmSpec& s, const void* a, std::int64_t k,
                     const EventLists& lists) {
  list(s, static_cast<const float*>(a), k, lists);
}
void list_events_f64(const GemmSpec& s, const void* a, std::int64_t k,
                     const EventLists& lists) {
  list(s, static_cast<const double*>(a), k, lists);
}
void add_events_f32(const EventProduct& p, const EventLists& lists) {
  add_cut<float>(p, lists);
}
void add_events_f64(const EventProduct& p, const EventLists& lists) {
  add_cut<double>(p, lists);
}
void add_row_events_f32(const EventProduct& p, const EventRows& rows) {
  add_rows<float>(p, rows);
}
void add_row_events_f64(const EventProduct& p, const EventRows& rows) {
  add_rows<double>(p, rows);
}
void list_row_f32(const void* a, std::int64_t k, std::int64_t row, const EventRows& to) {
  list_row(static_cast<const float*>(a), k, row, to);
}
void list_row_f64(const void* a, std::int64_t k, std::int64_t row, const EventRows& to) {
  list_row(static_cast<const double*>(a), k, row, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(event_columns_f32);
HWY_EXPORT(event_columns_f64);
HWY_EXPORT(list_events_f32);
HWY_EXPORT(list_events_f64);
HWY_EXPORT(add_events_f32);
HWY_EXPORT(add_events_f64);
HWY_EXPORT(add_row_events_f32);
HWY_EXPORT(add_row_events_f64);
HWY_EXPORT(list_row_f32);
HWY_EXPORT(list_row_f64);

std::int64_t event_columns(DType dtype) {
  if (dtype == DType::f32) return HWY_DYNAMIC_DISPATCH(event_columns_f32)();
  return HWY_DYNAMIC_DISPATCH(event_columns_f64)();
}

void list_events(DType dtype, const GemmSpec& s, const void* a, std::int64_t k,
                 const EventLists& lists) {
  if (dtype == DType::f32) return HWY_DYNAMIC_DISPATCH(list_events_f32)(s, a, k, lists);
  HWY_DYNAMIC_DISPATCH(list_events_f64)(s, a, k, lists);
}

void add_events(DType dtype, const EventProduct& p, const EventLists& lists) {
  if (dtype == DType::f32) return HWY_DYNAMIC_DISPATCH(add_events_f32)(p, lists);
  HWY_DYNAMIC_DISPATCH(add_events_f64)(p, lists);
}

void list_row_events(DType dtype, const void* a, std::int64_t k, std::int64_t row,
                     const EventRows& rows) {
  if (dtype == DType::f32) return HWY_DYNAMIC_DISPATCH(list_row_f32)(a, k, row, rows);
  HWY_DYNAMIC_DISPATCH(list_row_f64)(a, k, row, rows);
}

void add_row_events(DType dtype, const EventProduct& p, const EventRows& rows) {
  if (dtype == DType::f32) return HWY_DYNAMIC_DISPATCH(add_row_events_f32)(p, rows);
  HWY_DYNAMIC_DISPATCH(add_row_events_f64)(p, rows);
}

}  // namespace braintrace
#endif
