// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set.
#include "braintrace/run/conv_planes.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/conv_planes.cpp"
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

// NV vectors of one row of results, for all outputs; the last vector has `there` of them.
template <class T, int NV>
HWY_INLINE void piece_of_row(const PlaneConv& conv, const PlaneOperands& o, const T* x,
                             T* y, std::size_t there) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T *w = static_cast<const T*>(o.w), *bias = static_cast<const T*>(o.bias);
  hn::Vec<decltype(d)> sum[kPlaneOutputs][NV];
  for (int k = 0; k < kPlaneOutputs; ++k)
    for (int v = 0; v < NV; ++v)
      sum[k][v] = hn::Set(d, bias != nullptr && k < o.outputs ? bias[k] : T(0));
  const std::int64_t pitch = conv.padded_columns(), plane = conv.padded_plane();
  for (std::int64_t i = 0; i < conv.window_rows; ++i)
    for (std::int64_t j = 0; j < conv.window_columns; ++j) {
      const T* from = x + i * pitch + j;
      for (std::int64_t c = 0; c < conv.channels;
           ++c, from += plane, w += kPlaneOutputs) {
        hn::Vec<decltype(d)> seen[NV];
        for (int v = 0; v < NV; ++v) seen[v] = hn::LoadU(d, from + v * lanes);
        for (int k = 0; k < kPlaneOutputs; ++k) {
          const auto weight = hn::Set(d, w[k]);
          for (int v = 0; v < NV; ++v) sum[k][v] = hn::MulAdd(seen[v], weight, sum[k][v]);
        }
      }
    }
  for (int k = 0; k < o.outputs; ++k)
    for (int v = 0; v < NV; ++v) {
      T* to = y + k * o.y_plane + v * lanes;
      if (v + 1 < NV || there == static_cast<std::size_t>(lanes))
        hn::StoreU(sum[k][v], d, to);
      else
        hn::BlendedStore(sum[k][v], hn::FirstN(d, there), d, to);
    }
}

template <class T>
void planes(const PlaneConv& conv, const PlaneOperands& o) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < conv.rows; ++r) {
    const T* x = static_cast<const T*>(o.x) + r * conv.padded_columns();
    T* y = static_cast<T*>(o.y) + r * conv.columns;
    for (std::int64_t c = 0; c < conv.columns;) {
      const std::int64_t left = conv.columns - c;
      if (left > lanes) {
        const std::int64_t second = std::min(left - lanes, lanes);
        piece_of_row<T, 2>(conv, o, x + c, y + c, static_cast<std::size_t>(second));
        c += lanes + second;
      } else {
        piece_of_row<T, 1>(conv, o, x + c, y + c, static_cast<std::size_t>(left));
        c += left;
      }
    }
  }
}

// Results of P neighbouring positions.
template <class T, int P>
HWY_INLINE void sums_at(const PlaneConv& conv, const PlaneSums& s, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[kPlaneOutputs][P];
  for (auto& row : sum)
    for (auto& v : row) v = hn::Zero(d);
  const auto add = [&](const T* seen, const T* k, const auto& load) {
    hn::Vec<decltype(d)> at[P];
    for (int p = 0; p < P; ++p) at[p] = load(seen + p);
    for (int o = 0; o < kPlaneOutputs; ++o) {
      const auto factor = load(k + (o < s.outputs ? o : 0) * s.k_output);
      for (int p = 0; p < P; ++p) sum[o][p] = hn::MulAdd(at[p], factor, sum[o][p]);
    }
  };
  const std::int64_t whole = conv.window_columns / lanes * lanes;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(conv.window_columns - whole));
  const T* planes = static_cast<const T*>(s.k);
  for (std::int64_t c = 0; c < conv.channels; ++c, planes += s.k_channel)
    for (std::int64_t i = 0; i < conv.window_rows; ++i) {
      const T* seen = x + c * conv.padded_plane() + i * conv.padded_columns();
      const T* k = planes + i * conv.window_columns;
      for (std::int64_t j = 0; j < whole; j += lanes)
        add(seen + j, k + j, [&](const T* from) { return hn::LoadU(d, from); });
      if (whole < conv.window_columns)
        add(seen + whole, k + whole,
            [&](const T* from) { return hn::MaskedLoad(rest, d, from); });
    }
  for (int p = 0; p < P; ++p)
    for (int o = 0; o < s.outputs; ++o)
      y[p * s.y_row + o] += hn::GetLane(hn::SumOfLanes(d, sum[o][p]));
}

template <class T>
void sums(const PlaneConv& conv, const PlaneSums& s) {
  const T* x = static_cast<const T*>(s.x);
  T* y = static_cast<T*>(s.y);
  for (std::int64_t r = 0; r < conv.rows; ++r) {
    const T* row = x + r * conv.padded_columns();
    T* to = y + r * conv.columns * s.y_row;
    std::int64_t c = 0;
    for (; c + 3 <= conv.columns; c += 3)
      sums_at<T, 3>(conv, s, row + c, to + c * s.y_row);
    for (; c < conv.columns; ++c) sums_at<T, 1>(conv, s, row + c, to + c * s.y_row);
  }
}

}  // namespace

void sum_planes_f32(const PlaneConv& c, const PlaneSums& s) { sums<float>(c, s); }
void sum_planes_f64(const PlaneConv& c, const PlaneSums& s) { sums<double>(c, s); }
void conv_planes_f32(const PlaneConv& c, const PlaneOperands& o) { planes<float>(c, o); }
void conv_planes_f64(const PlaneConv& c, const PlaneOperands& o) { planes<double>(c, o); }

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {
HWY_EXPORT(conv_planes_f32);
HWY_EXPORT(conv_planes_f64);
HWY_EXPORT(sum_planes_f32);
HWY_EXPORT(sum_planes_f64);

void conv_planes(const PlaneConv& conv, const PlaneOperands& o) {
  if (conv.dtype == DType::f32)
    HWY_DYNAMIC_DISPATCH(conv_planes_f32)(conv, o);
  else
    HWY_DYNAMIC_DISPATCH(conv_planes_f64)(conv, o);
}
void sum_planes(const PlaneConv& conv, const PlaneSums& s) {
  if (conv.dtype == DType::f32)
    HWY_DYNAMIC_DISPATCH(sum_planes_f32)(conv, s);
  else
    HWY_DYNAMIC_DISPATCH(sum_planes_f64)(conv, s);
}

}  // namespace braintrace
#endif
