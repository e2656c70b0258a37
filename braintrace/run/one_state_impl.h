// SPDX-License-Identifier: Apache-2.0
// A trace of one state, in registers. Read once per instruction set, hence no #pragma
// once.
#if defined(BRAINTRACE_ONE_STATE) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAINTRACE_ONE_STATE
#undef BRAINTRACE_ONE_STATE
#else
#define BRAINTRACE_ONE_STATE
#endif

#include <hwy/highway.h>

#include "braintrace/run/trace_loops_impl.h"

HWY_BEFORE_NAMESPACE();
namespace braintrace {
namespace HWY_NAMESPACE {
namespace {

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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace braintrace
HWY_AFTER_NAMESPACE();
#endif
