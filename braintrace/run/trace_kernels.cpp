// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set.
#include "braintrace/run/trace_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/trace_kernels.cpp"
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
const T* operand(const void* const* in, int i) {
  return static_cast<const T*>(in[i]);
}

// Traces are larger than caches and are walked through once: what comes next is asked
// for early. Beyond the end nothing is fetched.
constexpr std::size_t kAheadBytes = 2048;
template <class T>
HWY_INLINE void fetch_ahead(const T* e) {
  __builtin_prefetch(reinterpret_cast<const char*>(e) + kAheadBytes, 1);
}

// u at position i.
template <class T, TraceInput input>
struct Added {
  const T* df;
  T x;
  Added(const void* const* in, int at, int number)
      : df(operand<T>(in, at)),
        x(*operand<T>(in, input == TraceInput::product ? number : at)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    if constexpr (input == TraceInput::number) return hn::Set(d, x);
    return hn::Mul(hn::LoadU(d, df + i), hn::Set(d, x));
  }
};

// Vectors, then single elements.
template <class T, class F>
HWY_INLINE void for_all(std::size_t n, const F& at) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) at(d, i);
  for (; i < n; ++i) at(one, i);
}

template <class T, TraceInput input>
void one_state(const void* const* in, void* const* out, std::size_t n) {
  const T *e = operand<T>(in, 0), *m = operand<T>(in, 1);
  const Added<T, input> u(in, 2, 3);
  const T *s = operand<T>(in, 4), *sum = operand<T>(in, 5);
  T *next = static_cast<T*>(out[0]), *total = static_cast<T*>(out[1]);
  for_all<T>(n, [&](auto d, std::size_t i) {
    fetch_ahead(e + i);
    const auto t = hn::Mul(hn::LoadU(d, m + i), hn::LoadU(d, e + i));
    const auto after = hn::Add(u(d, i), t);
    const auto earned = hn::Add(hn::Mul(hn::LoadU(d, s + i), t), hn::LoadU(d, sum + i));
    hn::StoreU(after, d, next + i);
    hn::StoreU(earned, d, total + i);
  });
}

template <class T, TraceInput input>
void single_sample(const void* const* in, void* const* out, std::size_t n) {
  const T *e = operand<T>(in, 0), *m = operand<T>(in, 1);
  const Added<T, input> u(in, 2, 3);
  const T *s = operand<T>(in, 4), *q = operand<T>(in, 5);
  const T y = *operand<T>(in, 6);
  T *next = static_cast<T*>(out[0]), *total = static_cast<T*>(out[1]);
  for_all<T>(n, [&](auto d, std::size_t i) {
    const auto at = [&](const T* p) { return hn::LoadU(d, p + i); };
    const auto t = hn::Mul(at(m), at(e));
    const auto after = hn::Add(u(d, i), t);
    const auto earned = hn::Add(hn::Mul(at(s), t), hn::Mul(at(q), hn::Set(d, y)));
    hn::StoreU(after, d, next + i);
    hn::StoreU(earned, d, total + i);
  });
}

template <class T, TraceInput input>
void driven_state(const void* const* in, void* const* out, std::size_t n) {
  const T *e = operand<T>(in, 0), *m = operand<T>(in, 1);
  const T r = *operand<T>(in, 2), y = *operand<T>(in, 7);
  const Added<T, input> u(in, 3, 4);
  const T *s = operand<T>(in, 5), *c = operand<T>(in, 6), *sum = operand<T>(in, 8);
  T *next = static_cast<T*>(out[0]), *total = static_cast<T*>(out[1]);
  for_all<T>(n, [&](auto d, std::size_t i) {
    const auto at = [&](const T* p) { return hn::LoadU(d, p + i); };
    const auto t = hn::Add(hn::Mul(at(m), at(e)), hn::Set(d, r));
    const auto earned = hn::Add(hn::Mul(at(s), t), hn::Mul(at(c), hn::Set(d, y)));
    hn::StoreU(hn::Add(u(d, i), t), d, next + i);
    hn::StoreU(hn::Add(at(sum), earned), d, total + i);
  });
}

// All of two states but where the trace itself lies.
template <class T, TraceInput input>
struct TwoStates {
  const T* m[4];
  Added<T, input> u1, u2;
  const T *s1, *s2, *sum;
  T* total;
  TwoStates(const void* const* in, void* const* out)
      : m{operand<T>(in, 2), operand<T>(in, 3), operand<T>(in, 4), operand<T>(in, 5)},
        u1(in, 6, 8),
        u2(in, 7, 8),
        s1(operand<T>(in, 9)),
        s2(operand<T>(in, 10)),
        sum(operand<T>(in, 11)),
        total(static_cast<T*>(out[2])) {}

  // From the old to the new states; adds to the sum.
  template <class D>
  HWY_INLINE void step(D d, std::size_t i, hn::Vec<D>& e1, hn::Vec<D>& e2) const {
    const auto at = [&](const T* p) { return hn::LoadU(d, p + i); };
    const auto t1 = hn::Add(hn::Mul(at(m[0]), e1), hn::Mul(at(m[1]), e2));
    const auto t2 = hn::Add(hn::Mul(at(m[2]), e1), hn::Mul(at(m[3]), e2));
    const auto earned = hn::Add(hn::Mul(at(s1), t1), hn::Mul(at(s2), t2));
    e1 = hn::Add(u1(d, i), t1);
    e2 = hn::Add(u2(d, i), t2);
    hn::StoreU(hn::Add(at(sum), earned), d, total + i);
  }
};

template <class T, TraceInput input>
void two_states(const void* const* in, void* const* out, std::size_t n) {
  const TwoStates<T, input> terms(in, out);
  const T *from1 = operand<T>(in, 0), *from2 = operand<T>(in, 1);
  T *to1 = static_cast<T*>(out[0]), *to2 = static_cast<T*>(out[1]);
  for_all<T>(n, [&](auto d, std::size_t i) {
    auto e1 = hn::LoadU(d, from1 + i), e2 = hn::LoadU(d, from2 + i);
    terms.step(d, i, e1, e2);
    hn::StoreU(e1, d, to1 + i);
    hn::StoreU(e2, d, to2 + i);
  });
}

template <TraceInput input>
void paired_states(const void* const* in, void* const* out, std::size_t n) {
  const TwoStates<float, input> terms(in, out);
  const float* from = operand<float>(in, 0);
  auto* to = static_cast<float*>(out[0]);
  for_all<float>(n, [&](auto d, std::size_t i) {
    fetch_ahead(from + 2 * i);
    hn::Vec<decltype(d)> e1, e2;
    hn::LoadInterleaved2(d, from + 2 * i, e1, e2);
    terms.step(d, i, e1, e2);
    hn::StoreInterleaved2(e1, e2, d, to + 2 * i);
  });
}

template <class T, TraceInput input>
TraceKernel of_states(int states) {
  return states == 1 ? one_state<T, input> : two_states<T, input>;
}
template <TraceInput input>
TraceKernel of_type(DType dtype, int states) {
  return dtype == DType::f32 ? of_states<float, input>(states)
                             : of_states<double, input>(states);
}

}  // namespace

TraceKernel find_trace_kernel(DType dtype, int states, TraceInput input) {
  return input == TraceInput::product ? of_type<TraceInput::product>(dtype, states)
                                      : of_type<TraceInput::number>(dtype, states);
}
TraceKernel find_single_kernel(DType dtype, TraceInput input) {
  const bool product = input == TraceInput::product;
  if (dtype == DType::f32)
    return product ? single_sample<float, TraceInput::product>
                   : single_sample<float, TraceInput::number>;
  return product ? single_sample<double, TraceInput::product>
                 : single_sample<double, TraceInput::number>;
}
TraceKernel find_driven_kernel(DType dtype, TraceInput input) {
  const bool product = input == TraceInput::product;
  if (dtype == DType::f32)
    return product ? driven_state<float, TraceInput::product>
                   : driven_state<float, TraceInput::number>;
  return product ? driven_state<double, TraceInput::product>
                 : driven_state<double, TraceInput::number>;
}
TraceKernel find_paired_kernel(TraceInput input) {
  return input == TraceInput::product ? paired_states<TraceInput::product>
                                      : paired_states<TraceInput::number>;
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(find_trace_kernel);
HWY_EXPORT(find_paired_kernel);
HWY_EXPORT(find_driven_kernel);
HWY_EXPORT(find_single_kernel);

TraceKernel trace_kernel(DType dtype, int states, TraceInput input) {
  return HWY_DYNAMIC_DISPATCH(find_trace_kernel)(dtype, states, input);
}

TraceKernel single_trace_kernel(DType dtype, TraceInput input) {
  return HWY_DYNAMIC_DISPATCH(find_single_kernel)(dtype, input);
}

TraceKernel driven_trace_kernel(DType dtype, TraceInput input) {
  return HWY_DYNAMIC_DISPATCH(find_driven_kernel)(dtype, input);
}

TraceKernel paired_trace_kernel(TraceInput input) {
  return HWY_DYNAMIC_DISPATCH(find_paired_kernel)(input);
}

}  // namespace braintrace
#endif
