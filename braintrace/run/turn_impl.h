// SPDX-License-Identifier: Apache-2.0
// Small blocks of a matrix turned in registers. Read once per instruction set, hence no
// #pragma once.
#if defined(BRAINTRACE_TURN) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAINTRACE_TURN
#undef BRAINTRACE_TURN
#else
#define BRAINTRACE_TURN
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Elements of columns that lie along k, as rows: four k of as many columns as a vector
// holds (f64: two k of two columns).
#if HWY_MAX_BYTES >= 32
using Turned = hn::FixedTag<float, 8>;
HWY_INLINE hn::Vec<Turned> four_k(const float* b, std::int64_t column) {
  const hn::Full128<float> half;
  return hn::Combine(Turned(), hn::LoadU(half, b + 4 * column), hn::LoadU(half, b));
}
#else
using Turned = hn::Full128<float>;
HWY_INLINE hn::Vec<Turned> four_k(const float* b, std::int64_t) {
  return hn::LoadU(Turned(), b);
}
#endif
HWY_INLINE void turn(const float* b, std::int64_t column, float* to, std::int64_t row) {
  const Turned d;
  const hn::Repartition<double, Turned> d64;
  const auto x0 = four_k(b, column), x1 = four_k(b + column, column);
  const auto x2 = four_k(b + 2 * column, column), x3 = four_k(b + 3 * column, column);
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d, x0, x1));
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d, x2, x3));
  const auto up01 = hn::BitCast(d64, hn::InterleaveUpper(d, x0, x1));
  const auto up23 = hn::BitCast(d64, hn::InterleaveUpper(d, x2, x3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23)), d, to + row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, up01, up23)), d, to + 2 * row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, up01, up23)), d, to + 3 * row);
}
HWY_INLINE void turn(const double* b, std::int64_t column, double* to, std::int64_t row) {
  const hn::Full128<double> d;
  const auto x0 = hn::LoadU(d, b), x1 = hn::LoadU(d, b + column);
  hn::StoreU(hn::InterleaveLower(d, x0, x1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, x0, x1), d, to + row);
}

// Of a block: elements of a column, columns.
template <class T>
constexpr std::int64_t kTurnedDown = 16 / sizeof(T);
template <class T>
constexpr std::int64_t kTurnedAcross =
    sizeof(T) == 4 ? static_cast<std::int64_t>(hn::MaxLanes(Turned())) : kTurnedDown<T>;
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();
#endif
