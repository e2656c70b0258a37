// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set.
#include "braintrace/run/sum_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/sum_rows.cpp"
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

// NV vectors of sums stay in registers.
template <int NV>
void sum_columns(const float* x, std::int64_t rows, std::int64_t stride, double* sums) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[NV];
  for (int v = 0; v < NV; ++v) sum[v] = hn::LoadU(d, sums + v * lanes);
  for (std::int64_t i = 0; i < rows; ++i, x += stride)
    for (int v = 0; v < NV; ++v)
      sum[v] = hn::Add(sum[v], hn::PromoteTo(d, hn::LoadU(half, x + v * lanes)));
  for (int v = 0; v < NV; ++v) hn::StoreU(sum[v], d, sums + v * lanes);
}

}  // namespace

void sum_rows_f32(const float* x, std::int64_t rows, std::int64_t stride, double* sums,
                  std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<double>()));
  std::int64_t j = 0;
  for (; j + 8 * lanes <= n; j += 8 * lanes)
    sum_columns<8>(x + j, rows, stride, sums + j);
  for (; j + lanes <= n; j += lanes) sum_columns<1>(x + j, rows, stride, sums + j);
  for (; j < n; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      sums[j] += static_cast<double>(x[i * stride + j]);
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(sum_rows_f32);

void sum_rows(const float* x, std::int64_t rows, std::int64_t stride, double* sums,
              std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(sum_rows_f32)(x, rows, stride, sums, n);
}

}  // namespace braintrace
#endif
