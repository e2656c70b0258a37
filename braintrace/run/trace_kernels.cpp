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
HWY_INLINE void fetch_ahead(const void* e) { __builtin_prefetch(e, 1); }

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

// Numbers of R rows.
template <class T, int R>
struct Numbers {
  T at[R];
  Numbers(const T* from, std::int64_t step) {
    for (int r = 0; r < R; ++r) at[r] = from[r * step];
  }
};

// R rows of one state. Pointers are copied first: vector stores may alias anything.
template <class T, TraceForm form, TraceInput input, int R>
HWY_INLINE void one_state(const void* const* in, void* const* out, std::size_t n,
                          const TraceRows& rows) {
  constexpr bool product = input == TraceInput::product;
  constexpr bool added = form == TraceForm::added, driven = form == TraceForm::driven;
  const std::int64_t row = rows.elements;
  const T *e = operand<T>(in, 0), *m = operand<T>(in, 1), *s = operand<T>(in, 4);
  const T *df = operand<T>(in, product ? 2 : 1), *q = operand<T>(in, added ? 4 : 5);
  const T* sum = operand<T>(in, driven                      ? 8
                                : form == TraceForm::joined ? 7
                                : added                     ? 5
                                                            : 0);
  const Numbers<T, R> x(operand<T>(in, product ? 3 : 2), rows.x);
  const Numbers<T, R> y(operand<T>(in, added ? 0 : 6), rows.y);
  const Numbers<T, R> drive(operand<T>(in, driven ? 7 : 0), rows.drive);
  T *next = static_cast<T*>(out[0]), *total = static_cast<T*>(out[1]);
  const T* ahead = rows.ahead == nullptr ? e + kAheadBytes / sizeof(T)
                                         : static_cast<const T*>(rows.ahead);
  const bool fixed_d = rows.fixed_d;
  for_all<T, true>(n, [&](auto d, std::size_t i) {
    const auto at = [&](const T* p) { return hn::LoadU(d, p + i); };
    const auto d_e = fixed_d ? hn::Set(d, *m) : at(m);
    const auto d_x = at(df), signal = at(s), other = at(q);
    for (int r = 0; r < R; ++r) {
      const std::int64_t below = r * row;
      fetch_ahead(ahead + below + i);
      auto t = hn::Mul(d_e, at(e + below));
      if constexpr (driven) t = hn::Add(t, hn::Set(d, drive.at[r]));
      auto u = hn::Set(d, x.at[r]);
      if constexpr (product) u = hn::Mul(d_x, u);
      auto earned = hn::Mul(signal, t);
      if constexpr (!added) earned = hn::Add(earned, hn::Mul(other, hn::Set(d, y.at[r])));
      if constexpr (form != TraceForm::single) earned = hn::Add(at(sum + below), earned);
      hn::StoreU(hn::Add(u, t), d, next + below + i);
      hn::StoreU(earned, d, total + below + i);
    }
  });
}

template <class T, TraceForm form, TraceInput input, int R>
HWY_NOINLINE void several_rows(const void* const* in, void* const* out, std::size_t n,
                               const TraceRows& rows) {
  one_state<T, form, input, R>(in, out, n, rows);
}
template <class T, TraceForm form, TraceInput input>
void one_row(const void* const* in, void* const* out, std::size_t n) {
  several_rows<T, form, input, 1>(in, out, n, {});
}

// All of two states but where the trace itself lies.
template <class T, TraceInput first, TraceInput second>
struct TwoStates {
  const T* m[4];
  Added<T, first> u1;
  Added<T, second> u2;
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

template <class T, TraceInput first, TraceInput second>
void two_states(const void* const* in, void* const* out, std::size_t n) {
  const TwoStates<T, first, second> terms(in, out);
  const T *from1 = operand<T>(in, 0), *from2 = operand<T>(in, 1);
  T *to1 = static_cast<T*>(out[0]), *to2 = static_cast<T*>(out[1]);
  for_all<T>(n, [&](auto d, std::size_t i) {
    auto e1 = hn::LoadU(d, from1 + i), e2 = hn::LoadU(d, from2 + i);
    terms.step(d, i, e1, e2);
    hn::StoreU(e1, d, to1 + i);
    hn::StoreU(e2, d, to2 + i);
  });
}

template <TraceInput first, TraceInput second>
void paired_states(const void* const* in, void* const* out, std::size_t n) {
  const TwoStates<float, first, second> terms(in, out);
  const float* from = operand<float>(in, 0);
  auto* to = static_cast<float*>(out[0]);
  for_all<float>(n, [&](auto d, std::size_t i) {
    fetch_ahead(from + 2 * i + kAheadBytes / sizeof(float));
    hn::Vec<decltype(d)> e1, e2;
    hn::LoadInterleaved2(d, from + 2 * i, e1, e2);
    terms.step(d, i, e1, e2);
    hn::StoreInterleaved2(e1, e2, d, to + 2 * i);
  });
}

// Calls `f` with a type, a form and what is added as template arguments.
template <class T, class F>
auto with_form(TraceForm form, TraceInput input, const F& f) {
  const bool product = input == TraceInput::product;
  switch (form) {
    case TraceForm::added:
      return product ? f.template operator()<T, TraceForm::added, TraceInput::product>()
                     : f.template operator()<T, TraceForm::added, TraceInput::number>();
    case TraceForm::single:
      return product ? f.template operator()<T, TraceForm::single, TraceInput::product>()
                     : f.template operator()<T, TraceForm::single, TraceInput::number>();
    case TraceForm::joined:
      return product ? f.template operator()<T, TraceForm::joined, TraceInput::product>()
                     : f.template operator()<T, TraceForm::joined, TraceInput::number>();
    default:
      return product ? f.template operator()<T, TraceForm::driven, TraceInput::product>()
                     : f.template operator()<T, TraceForm::driven, TraceInput::number>();
  }
}
template <class F>
auto with_kind(const TraceKind& k, const F& f) {
  return k.dtype == DType::f32 ? with_form<float>(k.form, k.input, f)
                               : with_form<double>(k.form, k.input, f);
}

// Calls `f` with what is added to either state as template arguments.
template <class F>
TraceKernel with_inputs(TraceInputs i, const F& f) {
  constexpr auto product = TraceInput::product, number = TraceInput::number;
  if (i.first == product)
    return i.second == product ? f.template operator()<product, product>()
                               : f.template operator()<product, number>();
  return i.second == product ? f.template operator()<number, product>()
                             : f.template operator()<number, number>();
}

}  // namespace

TraceKernel find_trace_kernel(const TraceKind& kind) {
  return with_kind(kind, []<class T, TraceForm f, TraceInput i>() -> TraceKernel {
    return one_row<T, f, i>;
  });
}
TraceRowsKernel find_rows_kernel(const TraceKind& kind, int rows) {
  return with_kind(kind, [&]<class T, TraceForm f, TraceInput i>() -> TraceRowsKernel {
    return rows == 1 ? several_rows<T, f, i, 1> : several_rows<T, f, i, kTraceRows>;
  });
}
TraceKernel find_two_state_kernel(DType dtype, TraceInputs inputs) {
  return with_inputs(inputs, [&]<TraceInput a, TraceInput b>() -> TraceKernel {
    return dtype == DType::f32 ? two_states<float, a, b> : two_states<double, a, b>;
  });
}
TraceKernel find_paired_kernel(TraceInputs inputs) {
  return with_inputs(inputs, []<TraceInput a, TraceInput b>() -> TraceKernel {
    return paired_states<a, b>;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(find_trace_kernel);
HWY_EXPORT(find_rows_kernel);
HWY_EXPORT(find_two_state_kernel);
HWY_EXPORT(find_paired_kernel);

TraceKernel trace_kernel(const TraceKind& kind) {
  return HWY_DYNAMIC_DISPATCH(find_trace_kernel)(kind);
}

TraceRowsKernel trace_rows_kernel(const TraceKind& kind, int rows) {
  return HWY_DYNAMIC_DISPATCH(find_rows_kernel)(kind, rows);
}

TraceKernel two_state_kernel(DType dtype, TraceInputs inputs) {
  return HWY_DYNAMIC_DISPATCH(find_two_state_kernel)(dtype, inputs);
}

TraceKernel paired_trace_kernel(TraceInputs inputs) {
  return HWY_DYNAMIC_DISPATCH(find_paired_kernel)(inputs);
}

}  // namespace braintrace
#endif
