// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set.
#include "braintrace/run/trace_kernels.h"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braintrace/run/trace_kernels.cpp"
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

// Positions whose rows run at once, so that the sum they add to is read and written once.
constexpr int kTogether = 2;

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

  // Of one row.
  struct RowNumbers {
    T x, y, drive;
  };
  HWY_INLINE RowNumbers numbers(std::int64_t r) const {
    return {x[r * rows.x], y[r * rows.y], drive[r * rows.drive]};
  }

  // Moves one vector of e. What a signal earns there.
  template <class D>
  static HWY_INLINE hn::Vec<D> move(D d, const Shared<D>& c, const T* from, T* to,
                                    const RowNumbers& row) {
    auto t = hn::Mul(c.d_e, hn::LoadU(d, from));
    if constexpr (driven) t = hn::Add(t, hn::Set(d, row.drive));
    auto u = hn::Set(d, row.x);
    if constexpr (product) u = hn::Mul(c.d_x, u);
    hn::StoreU(hn::Add(u, t), d, to);
    if constexpr (!met) return t;
    const auto earned = hn::Mul(c.signal, t);
    if constexpr (added) return earned;
    return hn::Add(earned, hn::Mul(c.other, hn::Set(d, row.y)));
  }
  template <class D>
  HWY_INLINE void row_part(D d, const Shared<D>& c, std::int64_t below,
                           const RowNumbers& row) const {
    auto earned = move(d, c, e + below, next + below, row);
    if constexpr (!met) return;
    if constexpr (adds_up(form)) earned = hn::Add(hn::LoadU(d, sum + below), earned);
    hn::StoreU(earned, d, total + below);
  }

  // R rows, then to the row behind them.
  template <int R>
  HWY_INLINE void step(std::size_t n) {
    const std::int64_t row = rows.elements;
    RowNumbers number[R];
    for (int r = 0; r < R; ++r) number[r] = numbers(r);
    const OneState c = *this;  // vector stores may alias the other one
    for_all<T, true>(n, [&](auto d, std::size_t i) {
      const auto all = c.shared(d, i);
      for (int r = 0; r < R; ++r) {
        const std::int64_t below = r * row + static_cast<std::int64_t>(i);
        fetch_ahead(c.ahead + below);
        c.row_part(d, all, below, number[r]);
      }
    });
    skip(R);
  }
  HWY_INLINE void skip(std::int64_t count) {
    const std::int64_t by = count * rows.elements;
    e += by, sum += by, ahead += by, next += by, total += by;
    x += count * rows.x, y += count * rows.y, drive += count * rows.drive;
  }

  // To another position of the loop, whose sum is the same.
  HWY_INLINE void go_on(std::int64_t count) {
    const auto by = [&](int i) {
      return count * rows.operand_bytes[i] / static_cast<std::int64_t>(sizeof(T));
    };
    e += by(0), m += by(1), x += by(kX), s += by(4), next += step_of_next(count);
    if constexpr (product) df += by(2);
    if constexpr (!added) q += by(5), y += by(6);
    if constexpr (driven) drive += by(7);
  }
  HWY_INLINE std::int64_t step_of_next(std::int64_t count) const {
    return count * rows.result_bytes[0] / static_cast<std::int64_t>(sizeof(T));
  }

  // All rows, one column of vectors after the other: what they share is read once.
  HWY_INLINE void narrow(std::size_t n) const {
    const std::int64_t count = rows.count, row = rows.elements;
    const OneState c = *this;
    for_all<T, true>(n, [&](auto d, std::size_t i) {
      const auto all = c.shared(d, i);
      for (std::int64_t r = 0; r < count; ++r)
        c.row_part(d, all, r * row + static_cast<std::int64_t>(i), c.numbers(r));
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

// Where the values lie that all rows of one position share; numbers are spread.
template <class T, class State>
struct SharedRows {
  const T *d_e, *d_x, *signal, *other;
  HWY_ALIGN T spread[3][kTracePiece / sizeof(T)];

  SharedRows(const State& s, std::size_t n)
      : d_e(s.m), d_x(s.df), signal(s.s), other(s.q) {
    const auto spread_number = [&](const T*& p, int operand, T* room) {
      if ((s.rows.numbers >> operand & 1U) != 0) p = std::fill_n(room, n, *p) - n;
    };
    spread_number(d_e, 1, spread[0]);
    if constexpr (State::product) spread_number(d_x, 2, spread[1]);
    if constexpr (State::added) spread_number(signal, 4, spread[2]);
  }
};

// kTraceRows rows of kTogether positions in turn; `ahead`: e of those that come next,
// from memory far away. Pointers are read again after every store, which costs nothing
// there (kept in registers: LIF of 400 units, batch 32, online 450 us instead of 400 to
// 416).
template <class T, class State>
HWY_INLINE void rows_from_afar(const State* s, const T* const* ahead, std::size_t n) {
  const std::int64_t row = s[0].rows.elements;
  typename State::RowNumbers number[kTogether][kTraceRows];
  for (int g = 0; g < kTogether; ++g)
    for (int r = 0; r < kTraceRows; ++r) number[g][r] = s[g].numbers(r);
  for_all<T>(n, [&](auto d, std::size_t i) {
    typename State::template Shared<decltype(d)> c[kTogether];
    for (int g = 0; g < kTogether; ++g) c[g] = s[g].shared(d, i);
    for (int r = 0; r < kTraceRows; ++r) {
      const std::int64_t below = r * row + static_cast<std::int64_t>(i);
      auto sum = hn::LoadU(d, s[0].sum + below);
      for (int g = 0; g < kTogether; ++g) {
        fetch_ahead(ahead[g] + below);
        const T* const from = s[g].e + below;
        sum = hn::Add(sum, State::move(d, c[g], from, s[g].next + below, number[g][r]));
      }
      hn::StoreU(sum, d, s[0].total + below);
    }
  });
}

// The same of what caches hold, where it is. Few pointers: they stay in registers.
template <class T, class State>
HWY_INLINE void rows_together(const State* s, const SharedRows<T, State>* shared,
                              std::size_t n) {
  const std::int64_t row = s[0].rows.elements;
  typename State::RowNumbers number[kTogether][kTraceRows];
  for (int g = 0; g < kTogether; ++g)
    for (int r = 0; r < kTraceRows; ++r) number[g][r] = s[g].numbers(r);
  const auto of_both = [&](const T* SharedRows<T, State>::*p) {
    return std::array{shared[0].*p, shared[1].*p};
  };
  using Rows = SharedRows<T, State>;
  const auto d_e = of_both(&Rows::d_e), d_x = of_both(&Rows::d_x);
  const auto signal = of_both(&Rows::signal), other = of_both(&Rows::other);
  T *const e[kTogether] = {s[0].next, s[1].next}, *const total = s[0].total;
  for_all<T>(n, [&](auto d, std::size_t i) {
    typename State::template Shared<decltype(d)> c[kTogether];
    const auto at = [&](const T* p) { return hn::LoadU(d, p + i); };
    for (int g = 0; g < kTogether; ++g) {
      c[g].d_e = c[g].d_x = at(d_e[g]);
      if constexpr (State::product) c[g].d_x = at(d_x[g]);
      c[g].signal = c[g].other = at(signal[g]);
      if constexpr (!State::added) c[g].other = at(other[g]);
    }
    for (int r = 0; r < kTraceRows; ++r) {
      const std::int64_t below = r * row + static_cast<std::int64_t>(i);
      auto sum = hn::LoadU(d, total + below);
      for (int g = 0; g < kTogether; ++g) {
        T* const here = e[g] + below;
        sum = hn::Add(sum, State::move(d, c[g], here, here, number[g][r]));
      }
      hn::StoreU(sum, d, total + below);
    }
  });
}

// What does not come in fours, or in pairs.
template <class State>
HWY_NOINLINE void one_row_each(State* s, std::size_t n) {
  for (int g = 0; g < kTogether; ++g) s[g].template step<1>(n);
}
template <class State>
HWY_NOINLINE void one_position(const State& s, std::size_t n) {
  all_rows(s, n, s.rows.count);
}

// All rows of both positions; behind the last ones come those `further` elements on.
template <bool kFetch, class T, class State>
HWY_INLINE void rows_at(State* s, std::int64_t further, std::size_t n) {
  const std::int64_t count = s[0].rows.count, row = s[0].rows.elements;
  std::int64_t left = count;
  const auto in_fours = [&](const auto& four) {
    for (; left >= kTraceRows; left -= kTraceRows) {
      const std::int64_t next =
          left > kTraceRows ? kTraceRows * row : (left - count) * row + further;
      const T* const ahead[kTogether] = {s[0].e + next, s[1].e + next};
      four(ahead);
      for (int g = 0; g < kTogether; ++g) s[g].skip(kTraceRows);
    }
  };
  if constexpr (kFetch) {
    in_fours([&](const T* const* ahead) { rows_from_afar(s, ahead, n); });
  } else {
    const SharedRows<T, State> shared[kTogether] = {{s[0], n}, {s[1], n}};
    in_fours([&](const T* const*) { rows_together(s, shared, n); });
  }
  for (; left > 0; --left) one_row_each(s, n);
  for (int g = 0; g < kTogether; ++g) s[g].skip(-count);
}

// Two by two positions all rows of a call, which lie side by side: memory is walked
// through in long stretches. Their sum stays in the nearest cache.
template <bool kFetch, class T, TraceForm form, TraceInput input>
HWY_NOINLINE void rows_to_one_sum(const void* const* in, void* const* out, std::size_t n,
                                  const TraceRows& rows) {
  using State = OneState<T, form, input>;
  const std::int64_t step = rows.operand_bytes[0] / static_cast<std::int64_t>(sizeof(T));
  State s[kTogether] = {State(in, out, rows), State(in, out, rows)};
  s[1].go_on(1);
  // Behind the last positions come the next rows of the first ones.
  const std::int64_t back = rows.count * rows.elements - rows.positions * step;
  std::int64_t left = rows.positions;
  const bool in_place = s[0].e == s[0].next && s[0].sum == s[0].total;
  for (; in_place && left >= kTogether; left -= kTogether) {
    const bool last = left == kTogether;
    rows_at<kFetch, T>(s, kTogether * step + (last ? back : 0), n);
    for (State& each : s) each.go_on(kTogether);
  }
  for (; left > 0; --left, s[0].go_on(1)) one_position(s[0], n);
}

template <class T, TraceForm form, TraceInput input>
HWY_NOINLINE void several_rows(const void* const* in, void* const* out, std::size_t n,
                               const TraceRows& rows) {
  if (n <= kNarrowTraceRow && (rows.count > kTraceRows || rows.positions > 1))
    return narrow_rows<T, form, input>(in, out, n, rows);
  if constexpr (adds_up(form))
    if (rows.positions > 1)
      return rows.fetch ? rows_to_one_sum<true, T, form, input>(in, out, n, rows)
                        : rows_to_one_sum<false, T, form, input>(in, out, n, rows);
  one_position(OneState<T, form, input>(in, out, rows), n);
}
template <class T, TraceForm form, TraceInput input>
void one_row(const void* const* in, void* const* out, std::size_t n) {
  several_rows<T, form, input>(in, out, n, {});
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
}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braintrace {
HWY_EXPORT(find_trace_kernel);
HWY_EXPORT(find_rows_kernel);

TraceKernel trace_kernel(const TraceKind& kind) {
  return HWY_DYNAMIC_DISPATCH(find_trace_kernel)(kind);
}
TraceRowsKernel trace_rows_kernel(const TraceKind& kind) {
  return HWY_DYNAMIC_DISPATCH(find_rows_kernel)(kind);
}

}  // namespace braintrace
#endif
