// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set.
#include "braintrace/run/trace_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/two_state_kernels.cpp"
// clang-format off
#include "braintrace/array/simd_targets.h"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include "braintrace/run/trace_loops_impl.h"

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

// Numbers of R rows.
template <class T, int R>
struct Numbers {
  T at[R];
  Numbers(const T* from, std::int64_t step) {
    for (int r = 0; r < R; ++r) at[r] = from[r * step];
  }
};

// Two states, as their rows come one after the other. `mixed`: a t has two terms.
template <class T, bool mixed, TraceForm form>
struct TwoStates {
  static constexpr bool sample = form != TraceForm::added;
  static constexpr bool adds = form != TraceForm::single;
  const T *e1, *e2, *own1, *own2, *source1, *source2, *d12, *d21, *df1, *df2, *s1, *s2,
      *q;
  const T *x1, *x2, *y, *sum, *ahead1, *ahead2;
  T *next1, *next2, *total;
  const TraceRows& rows;
  bool both1, both2;

  TwoStates(const void* const* in, void* const* out, const TraceRows& r) : rows(r) {
    const auto from = [&](int i) { return operand<T>(in, i); };
    e1 = from(0), e2 = from(1), d12 = from(3), d21 = from(4);
    const T *d11 = from(2), *d22 = from(5);
    both1 = d11 && d12, both2 = d21 && d22;
    // A state with one source: its coefficient and where that source is.
    own1 = d11 ? d11 : d12, own2 = d22 ? d22 : d21;
    source1 = d11 ? e1 : e2, source2 = d22 ? e2 : e1;
    df1 = from(6), df2 = from(7), s1 = from(9), s2 = from(10);
    x1 = r.inputs[0].number ? df1 : from(8), x2 = r.inputs[1].number ? df2 : from(8);
    q = sample ? from(12) : s1, y = sample ? from(13) : x1, sum = adds ? from(11) : e1;
    next1 = static_cast<T*>(out[0]), next2 = static_cast<T*>(out[1]);
    total = static_cast<T*>(out[2]);
    ahead1 = r.ahead ? static_cast<const T*>(r.ahead) : e1;
    ahead2 = r.ahead_2 ? static_cast<const T*>(r.ahead_2) : e2;
  }
  // R rows, then to the row behind them.
  template <int R>
  HWY_INLINE void step(std::size_t n) {
    const std::int64_t row = rows.elements;
    const Numbers<T, R> x_1(x1, rows.inputs[0].step), x_2(x2, rows.inputs[1].step);
    const Numbers<T, R> y_(y, rows.y);
    const TwoStates c = *this;  // vector stores may alias the other one
    const auto is_number = [&](int i) { return (rows.numbers >> i & 1U) != 0; };
    const bool d_number1 = is_number(own1 == d12 ? 3 : 2), other_number1 = is_number(3);
    const bool d_number2 = is_number(own2 == d21 ? 4 : 5), other_number2 = is_number(4);
    const bool df_number1 = is_number(6), df_number2 = is_number(7);
    const bool u_number1 = rows.inputs[0].number, u_number2 = rows.inputs[1].number;
    for_all<T, true>(n, [&](auto d, std::size_t i) {
      const auto at = [&](const T* p) { return hn::LoadU(d, p + i); };
      const auto coefficient = [&](const T* p, bool number) {
        return number ? hn::Set(d, *p) : at(p);
      };
      const auto one = hn::Set(d, T(1));
      const auto c1 = coefficient(c.own1, d_number1);
      const auto c2 = coefficient(c.own2, d_number2);
      const auto other1 = mixed && c.both1 ? coefficient(c.d12, other_number1) : one;
      const auto other2 = mixed && c.both2 ? coefficient(c.d21, other_number2) : one;
      const auto f1 = u_number1 ? one : coefficient(c.df1, df_number1);
      const auto f2 = u_number2 ? one : coefficient(c.df2, df_number2);
      const auto signal1 = at(c.s1), signal2 = at(c.s2), fresh = sample ? at(c.q) : one;
      for (int r = 0; r < R; ++r) {
        const std::int64_t below = r * row;
        fetch_ahead(c.ahead1 + below + i);
        fetch_ahead(c.ahead2 + below + i);
        auto t1 = hn::Mul(c1, at(c.source1 + below)),
             t2 = hn::Mul(c2, at(c.source2 + below));
        if (mixed && c.both1) t1 = hn::Add(t1, hn::Mul(other1, at(c.e2 + below)));
        if (mixed && c.both2) t2 = hn::Add(hn::Mul(other2, at(c.e1 + below)), t2);
        const auto u1 = hn::Mul(f1, hn::Set(d, x_1.at[r]));
        const auto u2 = hn::Mul(f2, hn::Set(d, x_2.at[r]));
        auto earned = hn::Add(hn::Mul(signal1, t1), hn::Mul(signal2, t2));
        if (sample) earned = hn::Add(hn::Mul(fresh, hn::Set(d, y_.at[r])), earned);
        if (adds) earned = hn::Add(at(c.sum + below), earned);
        hn::StoreU(hn::Add(u1, t1), d, c.next1 + below + i);
        hn::StoreU(hn::Add(u2, t2), d, c.next2 + below + i);
        hn::StoreU(earned, d, c.total + below + i);
      }
    });
    e1 += R * row, e2 += R * row, source1 += R * row, source2 += R * row;
    sum += R * row, ahead1 += R * row, ahead2 += R * row;
    next1 += R * row, next2 += R * row, total += R * row;
    x1 += R * rows.inputs[0].step, x2 += R * rows.inputs[1].step, y += R * rows.y;
  }
};

template <class T, bool mixed, TraceForm form>
HWY_NOINLINE void two_states(const void* const* in, void* const* out, std::size_t n,
                             const TraceRows& rows) {
  all_rows(TwoStates<T, mixed, form>(in, out, rows), n, rows.count);
}

}  // namespace

template <class T, bool mixed>
TraceRowsKernel two_states_of(TraceForm form) {
  return form == TraceForm::added    ? two_states<T, mixed, TraceForm::added>
         : form == TraceForm::single ? two_states<T, mixed, TraceForm::single>
                                     : two_states<T, mixed, TraceForm::joined>;
}
template <class T>
TraceRowsKernel two_states_as(const TwoStatesKind& kind) {
  return kind.mixed ? two_states_of<T, true>(kind.form)
                    : two_states_of<T, false>(kind.form);
}
TraceRowsKernel find_two_state_kernel(const TwoStatesKind& kind) {
  return kind.dtype == DType::f32 ? two_states_as<float>(kind)
                                  : two_states_as<double>(kind);
}

}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {

HWY_EXPORT(find_two_state_kernel);

TraceRowsKernel two_state_kernel(const TwoStatesKind& kind) {
  return HWY_DYNAMIC_DISPATCH(find_two_state_kernel)(kind);
}

}  // namespace braintrace
#endif
