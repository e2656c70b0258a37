// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set. Sums run over k in order, fused, as in gemm.
#include <algorithm>

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

// Without branches: every place is written, and kept when there is something.
template <class T>
void list(const GemmSpec& s, const T* a, std::int64_t k, const EventLists& out) {
  std::fill_n(out.counts, s.m, std::uint16_t{0});
  const auto note = [&](std::int64_t i, std::int64_t q) {
    std::uint16_t& n = out.counts[i];
    out.places[i * kEventDepth + n] = static_cast<std::uint16_t>(q);
    n = static_cast<std::uint16_t>(n + (a[i * s.a.row + q * s.a.col] != T(0) ? 1 : 0));
  };
  if (s.a.col == 1) {
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t q = 0; q < k; ++q) note(i, q);
    return;
  }
  for (std::int64_t q = 0; q < k; ++q)
    for (std::int64_t i = 0; i < s.m; ++i) note(i, q);
}

// What a sum starts from.
template <class T, class D>
HWY_INLINE auto start(D d, const EventProduct& p, const T* c, const T* bias) {
  if (!p.first) return hn::LoadU(d, c);
  auto v = hn::Zero(d);
  if (p.beta != 0) v = hn::Mul(hn::Set(d, static_cast<T>(p.beta)), hn::LoadU(d, c));
  return bias == nullptr ? v : hn::Add(v, hn::LoadU(d, bias));
}

// NV vectors of all rows, from `column` on. D is a vector or a single element.
template <class T, class D, int NV>
void columns(D d, const EventProduct& p, const EventLists& lists, std::int64_t column) {
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const T* b = static_cast<const T*>(p.b) + column;
  const T* bias = p.bias == nullptr ? nullptr : static_cast<const T*>(p.bias) + column;
  const T alpha = static_cast<T>(p.alpha);
  for (std::int64_t i = 0; i < p.m; ++i) {
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
      const V left = hn::Set(d, alpha * a[q * p.a_strides.col]);
      const T* row = b + q * p.b_row;
      for (int v = 0; v < NV; ++v)
        sum[v] = hn::MulAdd(left, hn::LoadU(d, row + v * n), sum[v]);
    }
    for (int v = 0; v < NV; ++v) hn::StoreU(sum[v], d, c + v * n);
  }
}

template <class T>
void add(const EventProduct& p, const EventLists& lists) {
  const Full<T> d;
  const std::int64_t n = lanes<T>();
  std::int64_t j = 0;
  for (; j + 8 * n <= p.columns; j += 8 * n) columns<T, Full<T>, 8>(d, p, lists, j);
  for (; j + 2 * n <= p.columns; j += 2 * n) columns<T, Full<T>, 2>(d, p, lists, j);
  for (; j + n <= p.columns; j += n) columns<T, Full<T>, 1>(d, p, lists, j);
  const hn::CappedTag<T, 1> one;
  for (; j < p.columns; ++j) columns<T, hn::CappedTag<T, 1>, 1>(one, p, lists, j);
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
