// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set.
#include "braintrace/run/pair_kernels.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/pair_kernels.cpp"
// clang-format off
#include "braintrace/array/simd_targets.h"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void split_pairs_4(const std::uint32_t* pairs, std::uint32_t* first,
                   std::uint32_t* second, std::size_t n) {
  const hn::ScalableTag<std::uint32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, pairs + 2 * i, a, b);
    hn::StoreU(a, d, first + i);
    hn::StoreU(b, d, second + i);
  }
  for (; i < n; ++i) {
    first[i] = pairs[2 * i];
    second[i] = pairs[2 * i + 1];
  }
}

void join_pairs_4(const std::uint32_t* first, const std::uint32_t* second,
                  std::uint32_t* pairs, std::size_t n) {
  const hn::ScalableTag<std::uint32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreInterleaved2(hn::LoadU(d, first + i), hn::LoadU(d, second + i), d,
                          pairs + 2 * i);
  for (; i < n; ++i) {
    pairs[2 * i] = first[i];
    pairs[2 * i + 1] = second[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(split_pairs_4);
HWY_EXPORT(join_pairs_4);

void split_pairs(const void* pairs, void* first, void* second, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(split_pairs_4)
  (static_cast<const std::uint32_t*>(pairs), static_cast<std::uint32_t*>(first),
   static_cast<std::uint32_t*>(second), n);
}

void join_pairs(const void* first, const void* second, void* pairs, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(join_pairs_4)
  (static_cast<const std::uint32_t*>(first), static_cast<const std::uint32_t*>(second),
   static_cast<std::uint32_t*>(pairs), n);
}

}  // namespace braintrace
#endif
