// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vector code behind gemm_events: lists of nonzeros, and rows of B added up by them.
#include <cstddef>
#include <cstdint>

#include "braintrace/run/gemm.h"

namespace braintrace {

// k is cut here, so that a block of B stays in the first-level cache: at most 32 KB.
inline constexpr std::int64_t kEventDepth = 64;
// Columns of C one call works on, at most: their sums are registers.
std::int64_t event_columns(DType dtype);
inline constexpr std::int64_t kEventVectors = 8;
// Of a block of B, at most.
inline constexpr std::size_t kEventBlockBytes = kEventDepth * kEventVectors * 64;

// Places of the nonzeros of one cut of A, row by row without gaps.
struct EventLists {
  std::uint64_t* bits;     // by row: room to turn A
  std::uint8_t* places;    // at most kEventDepth per row
  std::uint8_t* counts;    // by row
  std::uint8_t* all_ones;  // one flag: there is nothing but zeros and ones
};

// Places of the nonzeros of A, row by row along all of k: for few rows, whose sums then
// stay in registers to the end.
struct EventRows {
  std::uint32_t* places;  // `room` for every row: k and a vector more
  std::int64_t room;
  std::uint32_t* counts;   // by row
  std::uint8_t* all_ones;  // by row
};
inline constexpr std::int64_t kEventRowSlack = 16;  // elements of a vector, at most
// Of one row, with unit column stride.
void list_row_events(DType dtype, const void* a, std::int64_t k, std::int64_t row,
                     const EventRows& rows);

// The nonzeros of A [m, k], k at most kEventDepth.
void list_events(DType dtype, const GemmSpec& spec, const void* a, std::int64_t k,
                 const EventLists& lists);

// C [m, columns] = alpha A B + (first: beta C + bias, else C), for one cut of k. Needs:
// unit column strides of B and C.
struct EventProduct {
  std::int64_t m, columns;
  const void* a;
  MatrixStrides a_strides;
  const void* b;
  std::int64_t b_row;
  void* c;
  std::int64_t c_row;
  const void* bias;  // or null
  double alpha, beta;
  bool first;
};
void add_events(DType dtype, const EventProduct& p, const EventLists& lists);
// The same for a longer k; A has unit column strides.
void add_row_events(DType dtype, const EventProduct& p, const EventRows& rows);

}  // namespace braintrace
