// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums of rows that lie in memory one after the other.
#include <cstdint>

namespace braintrace {

// sums[j] += row 0 [j], then row 1 [j], ... for j < n; row i begins at x + i * stride.
// Bitwise what a plain loop gives.
void sum_rows(const float* x, std::int64_t rows, std::int64_t stride, double* sums,
              std::int64_t n);

}  // namespace braintrace
