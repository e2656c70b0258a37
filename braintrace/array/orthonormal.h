// SPDX-License-Identifier: Apache-2.0
#pragma once
// Orthonormal columns, for initial weights.
#include <cstdint>
#include <span>

namespace braintrace {

// Makes columns orthonormal, one after the other: each loses what it shares with those
// before it (Gram and Schmidt) and takes length 1. A column is `rows` numbers in a row.
// The same bits on every machine. Needs: no more columns than rows, independent.
void orthonormalize(std::span<double> columns, std::int64_t rows);

}  // namespace braintrace
