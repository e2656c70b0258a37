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
//   results: e', sum'; r and y are numbers. A single sample has no sum so far.
// Two states:  t_i = d_i1 e_1 + d_i2 e_2,  e_i' = t_i + u_i,
//              sum' = sum + (s_1 t_1 + s_2 t_2).
//   operands: e_1, e_2, d_11, d_12, d_21, d_22, df_1, df_2, x, s_1, s_2, sum
//   results: e_1', e_2', sum'
// u is df x with one number x, or one number (at df; x is not read). Every operation is
// rounded by itself. Results may be operands.
using TraceKernel = void (*)(const void* const* operands, void* const* results,
                             std::size_t n);

inline constexpr int kTraceOperands = 12, kTraceResults = 3;

enum class TraceInput { product, number };               // what u is
enum class TraceForm { added, single, joined, driven };  // of one state
struct TraceKind {
  DType dtype;  // f32 or f64
  TraceForm form;
  TraceInput input;
};

TraceKernel trace_kernel(const TraceKind& kind);
// u_1, then u_2.
struct TraceInputs {
  TraceInput first, second;
};
TraceKernel two_state_kernel(DType dtype, TraceInputs inputs);
// Two f32 states that lie in turn: e_1 and e_1' point to both, e_2 and e_2' are not read.
TraceKernel paired_trace_kernel(TraceInputs inputs);

// Several rows of one state, whose d, df, s and q are the same and read once for all.
// Elements from row to row: of e, sum and the results alike; of the numbers x, y and r.
struct TraceRows {
  std::int64_t elements = 0, x = 0, y = 0, drive = 0;
  bool fixed_d = false;         // d is one number
  const void* ahead = nullptr;  // rows of e that come next and are fetched early
};
using TraceRowsKernel = void (*)(const void* const* operands, void* const* results,
                                 std::size_t n, const TraceRows& rows);
inline constexpr int kTraceRows = 4;
TraceRowsKernel trace_rows_kernel(const TraceKind& kind, int rows);  // kTraceRows or 1

}  // namespace braintrace
