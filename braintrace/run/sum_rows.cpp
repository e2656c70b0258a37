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

// R rows at a time: memory is read as it lies, sums are loaded and stored once per R.
template <int R>
void add_rows(const float* x, std::int64_t stride, double* sums, std::int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    auto left = hn::LoadU(d, sums + j), right = hn::LoadU(d, sums + j + lanes);
    for (int r = 0; r < R; ++r) {
      const float* row = x + r * stride + j;
      left = hn::Add(left, hn::PromoteTo(d, hn::LoadU(half, row)));
      right = hn::Add(right, hn::PromoteTo(d, hn::LoadU(half, row + lanes)));
    }
    hn::StoreU(left, d, sums + j);
    hn::StoreU(right, d, sums + j + lanes);
  }
  for (; j < n; ++j)
    for (int r = 0; r < R; ++r) sums[j] += static_cast<double>(x[r * stride + j]);
}

}  // namespace

void sum_rows_f32(const float* x, std::int64_t rows, std::int64_t stride, double* sums,
                  std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= rows; i += 8) add_rows<8>(x + i * stride, stride, sums, n);
  for (; i < rows; ++i) add_rows<1>(x + i * stride, stride, sums, n);
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
