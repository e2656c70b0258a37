// SPDX-License-Identifier: Apache-2.0
#pragma once
// The update of a trace and what a signal earns with its past, in one loop: what a chain
// of kernels would carry through the cache stays in registers.
#include <cstddef>
#include <cstdint>

#include "braintrace/array/dtype.h"

namespace braintrace {

// One state:   t = d e,  e' = t + u,  and the signal s earns s t:
//   added:   sum' = s t + sum                operands: e, d, df, x, s, sum
//   single:  sum' = s t + q y                          e, d, df, x, s, q, y
//   joined:  sum' = sum + (s t + q y)                  e, d, df, x, s, q, y, sum
//   driven:  t = d e + r, other states of all neurons alike drive it,
//            sum' = sum + (s t + q y)                  e, d, df, x, s, q, y, r, sum
//   moved:   no signal meets it                        e, d, df, x
//   results: e', sum'; r and y are numbers. A single sample has no sum so far.
// Two states:  t_i = d_i1 e_1 + d_i2 e_2,  e_i' = t_i + u_i,
//              sum' = sum + (s_1 t_1 + s_2 t_2 + q y).
//   or, where there are both, sum + (q y + (s_1 t_1 + s_2 t_2))
//   operands: e_1, e_2, d_11, d_12, d_21, d_22, df_1, df_2, x, s_1, s_2, sum, q, y
//   results: e_1', e_2', sum'. Terms whose d, q or sum is null are left out; each t has a
//   d, and there is a sum or q y.
// u is df x with one number x, or one number (at df; x is not read). Every operation is
// rounded by itself. Results may be operands.
using TraceKernel = void (*)(const void* const* operands, void* const* results,
                             std::size_t n);

inline constexpr int kTraceOperands = 14, kTraceResults = 3;

enum class TraceInput { product, number };                      // what u is
enum class TraceForm { added, single, joined, driven, moved };  // of one state
struct TraceKind {
  DType dtype;  // f32 or f64
  TraceForm form;
  TraceInput input;
};
// Is the sum so far an operand? Then it is the last one.
constexpr bool adds_up(TraceForm form) {
  return form != TraceForm::single && form != TraceForm::moved;
}

TraceKernel trace_kernel(const TraceKind& kind);

// Rows of a trace, whose d, df, s and q are the same and read once for several of them.
// Elements from row to row: of states, sum and results alike; of the numbers.
struct TraceRows {
  std::int64_t count = 1;
  std::int64_t elements = 0, x = 0, y = 0, drive = 0;
  unsigned numbers = 0;  // bit i: operand i is one number: a d or df, or the s of `added`
  const void* ahead = nullptr;  // rows of e that come next and are fetched early
  // Positions of a loop around narrow rows, or around rows that all add to one sum, and
  // bytes from one to the next.
  std::int64_t positions = 1;
  const std::int64_t *operand_bytes = nullptr, *result_bytes = nullptr;
  bool fetch = false;  // of rows that add to one sum: those that come next
  // Of two states: is u_i one number, and how far is it from row to row?
  struct {
    bool number = false;
    std::int64_t step = 0;
  } inputs[2] = {};
  const void* ahead_2 = nullptr;
};
using TraceRowsKernel = void (*)(const void* const* operands, void* const* results,
                                 std::size_t n, const TraceRows& rows);
inline constexpr int kTraceRows = 4;  // at once
// Bytes of a row, at most, that one call takes where positions add to one sum.
inline constexpr std::size_t kTracePiece = 2048;
// Elements of a row, at most, that one call takes at several positions (of one state).
inline constexpr std::size_t kNarrowTraceRow = 64;
TraceRowsKernel trace_rows_kernel(const TraceKind& kind);
struct TwoStatesKind {
  DType dtype;
  bool mixed;      // a t has both its d
  TraceForm form;  // added: a sum so far; single: q y; joined: both
};
TraceRowsKernel two_state_kernel(const TwoStatesKind& kind);

}  // namespace braintrace
