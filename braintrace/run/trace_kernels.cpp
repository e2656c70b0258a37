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

// Several rows at once, then single ones.
template <class State>
HWY_INLINE void all_rows(State t, std::size_t n, std::int64_t count) {
  for (; count >= kTraceRows; count -= kTraceRows) t.template step<kTraceRows>(n);
  for (; count > 0; --count) t.template step<1>(n);
}

// One state, as its rows come one after the other.
template <class T, TraceForm form, TraceInput input>
struct OneState {
  static constexpr bool product = input == TraceInput::product;
  static constexpr bool added = form == TraceForm::added;
  static constexpr bool driven = form == TraceForm::driven;
  static constexpr bool met = form != TraceForm::moved;
  static constexpr int kOperands = driven                      ? 9
                                   : form == TraceForm::joined ? 8
                                   : form == TraceForm::single ? 7
                                   : added                     ? 6
                                                               : 4;
  static constexpr int kX = product ? 3 : 2;
  static constexpr int kSum = driven ? 8 : form == TraceForm::joined ? 7 : added ? 5 : 0;
  const T *e, *m, *s, *df, *q, *sum, *x, *y, *drive, *ahead;
  T *next, *total;
  const TraceRows& rows;

  OneState(const void* const* in, void* const* out, const TraceRows& r) : rows(r) {
    const auto from = [&](int i) { return operand<T>(in, i); };
    e = from(0), m = from(1), s = from(met ? 4 : 0);
    df = from(product ? 2 : 1), q = from(!met ? 0 : added ? 4 : 5), sum = from(kSum);
    x = from(kX), y = from(added || !met ? 0 : 6);
    drive = from(driven ? 7 : 0);
    next = static_cast<T*>(out[0]), total = static_cast<T*>(out[1]);
    ahead =
        r.ahead == nullptr ? e + kAheadBytes / sizeof(T) : static_cast<const T*>(r.ahead);
  }

  // What all rows share, of one vector.
  template <class D>
  struct Shared {
    hn::Vec<D> d_e, d_x, signal, other;
  };
  template <class D>
  HWY_INLINE Shared<D> shared(D d, std::size_t i) const {
    const auto is_number = [&](int k) { return (rows.numbers >> k & 1U) != 0; };
    const auto at = [&](const T* p, bool number) {
      return number ? hn::Set(d, *p) : hn::LoadU(d, p + i);
    };
    const auto d_e = at(m, is_number(1)), d_x = at(df, product && is_number(2));
    if constexpr (!met) return {d_e, d_x, d_e, d_e};
    const auto signal = at(s, added && is_number(4));
    return {d_e, d_x, signal, added ? signal : at(q, false)};
  }

  // One vector of a row `below` elements further on.
  template <class D>
  HWY_INLINE void row_part(D d, const Shared<D>& c, std::int64_t below, T x_, T y_,
                           T drive_) const {
    auto t = hn::Mul(c.d_e, hn::LoadU(d, e + below));
    if constexpr (driven) t = hn::Add(t, hn::Set(d, drive_));
    auto u = hn::Set(d, x_);
    if constexpr (product) u = hn::Mul(c.d_x, u);
    if constexpr (met) {
      auto earned = hn::Mul(c.signal, t);
      if constexpr (!added) earned = hn::Add(earned, hn::Mul(c.other, hn::Set(d, y_)));
      if constexpr (form != TraceForm::single)
        earned = hn::Add(hn::LoadU(d, sum + below), earned);
      hn::StoreU(earned, d, total + below);
    }
    hn::StoreU(hn::Add(u, t), d, next + below);
  }

  // R rows, then to the row behind them.
  template <int R>
  HWY_INLINE void step(std::size_t n) {
    const std::int64_t row = rows.elements;
    const Numbers<T, R> x_(x, rows.x), y_(y, rows.y), drive_(drive, rows.drive);
    const OneState c = *this;  // vector stores may alias the other one
    for_all<T, true>(n, [&](auto d, std::size_t i) {
      const auto all = c.shared(d, i);
      for (int r = 0; r < R; ++r) {
        const std::int64_t below = r * row + static_cast<std::int64_t>(i);
        fetch_ahead(c.ahead + below);
        c.row_part(d, all, below, x_.at[r], y_.at[r], drive_.at[r]);
      }
    });
    e += R * row, sum += R * row, ahead += R * row;
    next += R * row, total += R * row;
    x += R * rows.x, y += R * rows.y, drive += R * rows.drive;
  }

  // All rows, one column of vectors after the other: what they share is read once.
  HWY_INLINE void narrow(std::size_t n) const {
    const std::int64_t count = rows.count, row = rows.elements;
    const OneState c = *this;
    for_all<T, true>(n, [&](auto d, std::size_t i) {
      const auto all = c.shared(d, i);
      for (std::int64_t r = 0; r < count; ++r)
        c.row_part(d, all, r * row + static_cast<std::int64_t>(i), c.x[r * rows.x],
                   c.y[r * rows.y], c.drive[r * rows.drive]);
    });
  }
};

// Where operands and results are, as positions come one after the other.
struct Position {
  const void* in[kTraceOperands];
  void* out[kTraceResults];
  int num_operands;
  const TraceRows* rows;

  Position(const void* const* from, void* const* to, int count, const TraceRows& r)
      : num_operands(count), rows(&r) {
    for (int i = 0; i < count; ++i) in[i] = from[i];
    for (int i = 0; i < kTraceResults; ++i) out[i] = to[i];
  }
  Position further(std::int64_t by) const {
    Position p = *this;
    for (int i = 0; i < num_operands; ++i)
      p.in[i] = static_cast<const std::byte*>(in[i]) + by * rows->operand_bytes[i];
    for (int i = 0; i < kTraceResults; ++i)
      p.out[i] = static_cast<std::byte*>(out[i]) + by * rows->result_bytes[i];
    return p;
  }
};

// Four positions that add to one sum, which stays in a register. `same_x`: x does not
// change from one to the next.
template <class T, TraceInput input, bool same_x>
HWY_INLINE void four_positions(const Position& first, std::size_t n,
                               const TraceRows& rows) {
  using State = OneState<T, TraceForm::added, input>;
  const auto at = [&](int p) {
    const Position here = first.further(p);
    return State(here.in, here.out, rows);
  };
  const State s[4] = {at(0), at(1), at(2), at(3)};
  const std::int64_t count = rows.count, row = rows.elements;
  for_all<T, true>(n, [&](auto d, std::size_t i) {
    const typename State::template Shared<decltype(d)> c[4] = {
        s[0].shared(d, i), s[1].shared(d, i), s[2].shared(d, i), s[3].shared(d, i)};
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t below = r * row + static_cast<std::int64_t>(i);
      auto sum = hn::LoadU(d, s[0].sum + below);
      const auto x = hn::Set(d, s[0].x[r * rows.x]);
      for (int p = 0; p < 4; ++p) {
        const auto t = hn::Mul(c[p].d_e, hn::LoadU(d, s[p].e + below));
        auto u = same_x ? x : hn::Set(d, s[p].x[r * rows.x]);
        if constexpr (State::product) u = hn::Mul(c[p].d_x, u);
        hn::StoreU(hn::Add(u, t), d, s[p].next + below);
        sum = hn::Add(sum, hn::Mul(c[p].signal, t));
      }
      hn::StoreU(sum, d, s[0].total + below);
    }
  });
}

template <class T, TraceForm form, TraceInput input>
HWY_NOINLINE void narrow_rows(const void* const* in, void* const* out, std::size_t n,
                              const TraceRows& rows) {
  using State = OneState<T, form, input>;
  Position at(in, out, State::kOperands, rows);
  std::int64_t left = rows.positions;
  if constexpr (form == TraceForm::added)
    for (; left >= 4 && rows.operand_bytes[State::kSum] == 0; left -= 4) {
      rows.operand_bytes[State::kX] == 0 ? four_positions<T, input, true>(at, n, rows)
                                         : four_positions<T, input, false>(at, n, rows);
      if (left == 4) return;
      at = at.further(4);
    }
  for (;; at = at.further(1)) {
    State(at.in, at.out, rows).narrow(n);
    if (--left == 0) return;
  }
}

template <class T, TraceForm form, TraceInput input>
HWY_NOINLINE void several_rows(const void* const* in, void* const* out, std::size_t n,
                               const TraceRows& rows) {
  if (n <= kNarrowTraceRow && (rows.count > kTraceRows || rows.positions > 1))
    return narrow_rows<T, form, input>(in, out, n, rows);
  all_rows(OneState<T, form, input>(in, out, rows), n, rows.count);
}
template <class T, TraceForm form, TraceInput input>
void one_row(const void* const* in, void* const* out, std::size_t n) {
  several_rows<T, form, input>(in, out, n, {});
}

// Two states, as their rows come one after the other. `mixed`: a t has two terms;
// `sample`: the sum is q y, not one so far.
template <class T, bool mixed, bool sample>
struct TwoStates {
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
    q = sample ? from(12) : s1, y = sample ? from(13) : x1, sum = sample ? e1 : from(11);
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
        const auto earned = hn::Add(hn::Mul(signal1, t1), hn::Mul(signal2, t2));
        const auto more =
            sample ? hn::Mul(fresh, hn::Set(d, y_.at[r])) : at(c.sum + below);
        hn::StoreU(hn::Add(u1, t1), d, c.next1 + below + i);
        hn::StoreU(hn::Add(u2, t2), d, c.next2 + below + i);
        hn::StoreU(hn::Add(more, earned), d, c.total + below + i);
      }
    });
    e1 += R * row, e2 += R * row, source1 += R * row, source2 += R * row;
    sum += R * row, ahead1 += R * row, ahead2 += R * row;
    next1 += R * row, next2 += R * row, total += R * row;
    x1 += R * rows.inputs[0].step, x2 += R * rows.inputs[1].step, y += R * rows.y;
  }
};

template <class T, bool mixed, bool sample>
HWY_NOINLINE void two_states(const void* const* in, void* const* out, std::size_t n,
                             const TraceRows& rows) {
  all_rows(TwoStates<T, mixed, sample>(in, out, rows), n, rows.count);
}

// Calls `f` with a type, a form and what is added as template arguments.
template <class T, TraceForm form, class F>
auto with_input(TraceInput input, const F& f) {
  return input == TraceInput::product
             ? f.template operator()<T, form, TraceInput::product>()
             : f.template operator()<T, form, TraceInput::number>();
}
template <class T, class F>
auto with_form(TraceForm form, TraceInput input, const F& f) {
  switch (form) {
    case TraceForm::added:
      return with_input<T, TraceForm::added>(input, f);
    case TraceForm::single:
      return with_input<T, TraceForm::single>(input, f);
    case TraceForm::joined:
      return with_input<T, TraceForm::joined>(input, f);
    case TraceForm::moved:
      return with_input<T, TraceForm::moved>(input, f);
    default:
      return with_input<T, TraceForm::driven>(input, f);
  }
}
template <class F>
auto with_kind(const TraceKind& k, const F& f) {
  return k.dtype == DType::f32 ? with_form<float>(k.form, k.input, f)
                               : with_form<double>(k.form, k.input, f);
}

}  // namespace

TraceKernel find_trace_kernel(const TraceKind& kind) {
  return with_kind(kind, []<class T, TraceForm f, TraceInput i>() -> TraceKernel {
    return one_row<T, f, i>;
  });
}
TraceRowsKernel find_rows_kernel(const TraceKind& kind) {
  return with_kind(kind, []<class T, TraceForm f, TraceInput i>() -> TraceRowsKernel {
    return several_rows<T, f, i>;
  });
}
template <class T>
TraceRowsKernel two_states_as(const TwoStatesKind& kind) {
  if (kind.mixed)
    return kind.sample ? two_states<T, true, true> : two_states<T, true, false>;
  return kind.sample ? two_states<T, false, true> : two_states<T, false, false>;
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

HWY_EXPORT(find_trace_kernel);
HWY_EXPORT(find_rows_kernel);
HWY_EXPORT(find_two_state_kernel);

TraceKernel trace_kernel(const TraceKind& kind) {
  return HWY_DYNAMIC_DISPATCH(find_trace_kernel)(kind);
}

TraceRowsKernel trace_rows_kernel(const TraceKind& kind) {
  return HWY_DYNAMIC_DISPATCH(find_rows_kernel)(kind);
}

TraceRowsKernel two_state_kernel(const TwoStatesKind& kind) {
  return HWY_DYNAMIC_DISPATCH(find_two_state_kernel)(kind);
}

}  // namespace braintrace
#endif
