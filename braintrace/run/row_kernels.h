// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows brought together: turned, copied, or one number spread over each.
#include <cstddef>
#include <cstdint>

namespace braintrace {

// to[r * to_row + c] = from[r + c * from_column], in elements of 4 or 8 bytes. The two do
// not overlap.
struct TurnedMatrix {
  std::int64_t rows, columns;
  std::int64_t from_column, to_row;
};
void turn_matrix(std::size_t element_bytes, const TurnedMatrix& m, const void* from,
                 void* to);

// Packed rows of `columns` elements: copies of rows, or of the numbers, that lie `stride`
// elements apart.
struct PackedRows {
  std::int64_t rows, columns, stride;
};
void pack_rows(std::size_t element_bytes, const PackedRows& p, const void* from,
               void* to);
void spread_rows(std::size_t element_bytes, const PackedRows& p, const void* from,
                 void* to);

}  // namespace braintrace
