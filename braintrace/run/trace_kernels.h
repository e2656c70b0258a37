// SPDX-License-Identifier: Apache-2.0
#pragma once
// The update of a trace and what a signal earns with its past, in one loop: what a chain
// of kernels would carry through the cache stays in registers.
#include <cstddef>

#include "braintrace/array/dtype.h"

namespace braintrace {

// One state:   t = d e,  e' = t + u,  sum' = s t + sum.
//   operands: e, d, df, x, s, sum; results: e', sum'
// Two states:  t_i = d_i1 e_1 + d_i2 e_2,  e_i' = t_i + u_i,
//              sum' = sum + (s_1 t_1 + s_2 t_2).
//   operands: e_1, e_2, d_11, d_12, d_21, d_22, df_1, df_2, x, s_1, s_2, sum
//   results: e_1', e_2', sum'
// u is df x with one number x, or one number (at df; x is not read). Every operation is
// rounded by itself. Results may be operands.
using TraceKernel = void (*)(const void* const* operands, void* const* results,
                             std::size_t n);

inline constexpr int kTraceOperands = 12, kTraceResults = 3;

enum class TraceInput { product, number };  // what u is

// f32 or f64; one or two states.
TraceKernel trace_kernel(DType dtype, int states, TraceInput input);
// One state of a single sample, where nothing is summed yet:
//   t = d e,  e' = t + u,  sum' = s t + q y  with a number y
//   operands: e, d, df, x, s, q, y; results: e', sum'
TraceKernel single_trace_kernel(DType dtype, TraceInput input);
// Two f32 states that lie in turn: e_1 and e_1' point to both, e_2 and e_2' are not read.
TraceKernel paired_trace_kernel(TraceInput input);
// One state that others drive, which are the same for all neurons:
//   t = d e + r,  e' = t + u,  sum' = sum + (s t + c y)  with numbers r and y
//   operands: e, d, r, df, x, s, c, y, sum; results: e', sum'
TraceKernel driven_trace_kernel(DType dtype, TraceInput input);

}  // namespace braintrace
