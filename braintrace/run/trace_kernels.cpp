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

#include "braintrace/run/one_state_impl.h"

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

// Positions whose rows run at once, so that the sum they add to is read and written once.
constexpr int kTogether = 2;

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
