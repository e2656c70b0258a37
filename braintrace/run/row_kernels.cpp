// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set.
#include "braintrace/run/row_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/row_kernels.cpp"
// clang-format off
#include "braintrace/array/simd_targets.h"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include "braintrace/run/turn_impl.h"

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void one_by_one(const TurnedMatrix& m, const T* from, T* to, std::int64_t first_row,
                std::int64_t last_row, std::int64_t first_column) {
  for (std::int64_t r = first_row; r < last_row; ++r)
    for (std::int64_t c = first_column; c < m.columns; ++c)
      to[r * m.to_row + c] = from[r + c * m.from_column];
}

// Rows of the source may lie so far apart that few of their lines stay in the cache:
// strips as wide as a line.
template <class T>
void turn_all(const TurnedMatrix& m, const T* from, T* to) {
#if HWY_TARGET != HWY_SCALAR
  constexpr std::int64_t kDown = kTurnedDown<T>, kAcross = kTurnedAcross<T>;
  constexpr std::int64_t kStrip = 64 / sizeof(T);
  const std::int64_t down = m.rows / kDown * kDown;
  const std::int64_t across = m.columns / kAcross * kAcross;
  for (std::int64_t strip = 0; strip < down; strip += kStrip) {
    const std::int64_t end = strip + kStrip < down ? strip + kStrip : down;
    for (std::int64_t c = 0; c < across; c += kAcross)
      for (std::int64_t r = strip; r < end; r += kDown)
        turn(from + r + c * m.from_column, m.from_column, to + r * m.to_row + c,
             m.to_row);
    one_by_one(m, from, to, strip, end, across);
  }
  one_by_one(m, from, to, down, m.rows, 0);
#else
  one_by_one(m, from, to, 0, m.rows, 0);
#endif
}

// Vectors, then single elements: at(d, column).
template <class T, class F>
HWY_INLINE void along_row(std::int64_t columns, const F& at) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = 0;
  for (; c + lanes <= columns; c += lanes) at(d, c);
  for (; c < columns; ++c) at(one, c);
}

template <class T>
void pack_all(const PackedRows& p, const T* from, T* to) {
  for (std::int64_t r = 0; r < p.rows; ++r, from += p.stride, to += p.columns)
    along_row<T>(p.columns, [&](auto d, std::int64_t c) {
      hn::StoreU(hn::LoadU(d, from + c), d, to + c);
    });
}

template <class T>
void spread_all(const PackedRows& p, const T* from, T* to) {
  for (std::int64_t r = 0; r < p.rows; ++r, from += p.stride, to += p.columns)
    along_row<T>(p.columns, [&](auto d, std::int64_t c) {
      hn::StoreU(hn::Set(d, *from), d, to + c);
    });
}

}  // namespace

void pack_f32(const PackedRows& p, const void* from, void* to) {
  pack_all(p, static_cast<const float*>(from), static_cast<float*>(to));
}
void pack_f64(const PackedRows& p, const void* from, void* to) {
  pack_all(p, static_cast<const double*>(from), static_cast<double*>(to));
}
void spread_f32(const PackedRows& p, const void* from, void* to) {
  spread_all(p, static_cast<const float*>(from), static_cast<float*>(to));
}
void spread_f64(const PackedRows& p, const void* from, void* to) {
  spread_all(p, static_cast<const double*>(from), static_cast<double*>(to));
}
void turn_f32(const TurnedMatrix& m, const void* from, void* to) {
  turn_all(m, static_cast<const float*>(from), static_cast<float*>(to));
}
void turn_f64(const TurnedMatrix& m, const void* from, void* to) {
  turn_all(m, static_cast<const double*>(from), static_cast<double*>(to));
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(pack_f32);
HWY_EXPORT(pack_f64);
HWY_EXPORT(spread_f32);
HWY_EXPORT(spread_f64);
HWY_EXPORT(turn_f32);
HWY_EXPORT(turn_f64);

void pack_rows(std::size_t element_bytes, const PackedRows& p, const void* from,
               void* to) {
  if (element_bytes == 4) return HWY_DYNAMIC_DISPATCH(pack_f32)(p, from, to);
  HWY_DYNAMIC_DISPATCH(pack_f64)(p, from, to);
}

void spread_rows(std::size_t element_bytes, const PackedRows& p, const void* from,
                 void* to) {
  if (element_bytes == 4) return HWY_DYNAMIC_DISPATCH(spread_f32)(p, from, to);
  HWY_DYNAMIC_DISPATCH(spread_f64)(p, from, to);
}

void turn_matrix(std::size_t element_bytes, const TurnedMatrix& m, const void* from,
                 void* to) {
  if (element_bytes == 4) return HWY_DYNAMIC_DISPATCH(turn_f32)(m, from, to);
  HWY_DYNAMIC_DISPATCH(turn_f64)(m, from, to);
}

}  // namespace braintrace
#endif
