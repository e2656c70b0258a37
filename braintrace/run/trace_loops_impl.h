// SPDX-License-Identifier: Apache-2.0
// What the kernels of traces have in common. Read once per instruction set, hence no
// #pragma once.
#if defined(BRAINTRACE_TRACE_LOOPS) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAINTRACE_TRACE_LOOPS
#undef BRAINTRACE_TRACE_LOOPS
#else
#define BRAINTRACE_TRACE_LOOPS
#endif

#include <hwy/highway.h>

#include "braintrace/run/trace_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
const T* operand(const void* const* in, int i) {
  return static_cast<const T*>(in[i]);
}

// Traces are larger than caches and are walked through once: what comes next is asked
// for early. Beyond the end nothing is fetched.
constexpr std::size_t kAheadBytes = 2048;
HWY_INLINE void fetch_ahead(const void* e) { __builtin_prefetch(e, 1); }

// Vectors, then single elements; `kPairs`: in between pairs, for short rows.
template <class T, bool kPairs = false, class F>
HWY_INLINE void for_all(std::size_t n, const F& at) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) at(d, i);
  if constexpr (kPairs && HWY_MAX_BYTES > 2 * sizeof(T))
    for (const hn::CappedTag<T, 2> two; i + 2 <= n; i += 2) at(two, i);
  for (; i < n; ++i) at(one, i);
}

// Several rows at once, then single ones.
template <class State>
HWY_INLINE void all_rows(State t, std::size_t n, std::int64_t count) {
  for (; count >= kTraceRows; count -= kTraceRows) t.template step<kTraceRows>(n);
  for (; count > 0; --count) t.template step<1>(n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();
#endif
