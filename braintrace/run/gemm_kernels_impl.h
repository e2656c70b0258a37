// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vector code behind gemm: one tile of C on one thread.
#include <cstddef>
#include <cstdint>

#include "braintrace/run/gemm.h"

namespace braintrace {

inline constexpr std::int64_t kDepth = 384;      // k is cut here, sums go through C
inline constexpr std::int64_t kDirectRows = 36;  // with more rows B is copied first
// Room for some panels of B.
inline constexpr std::size_t kPanelScratch = std::size_t{1} << 18;

struct TileProduct {
  std::int64_t m, n, k;
  const void* a;
  MatrixStrides a_strides;
  const void* b;
  MatrixStrides b_strides;
  std::int64_t packed_panel;  // B is packed: elements per panel; 0: strides count
  void* c;                    // unit column stride
  std::int64_t c_row;
  const void* bias;  // or null
  double alpha, beta;
  // Room for a copy of A (kGroupScratch), or null.
  std::byte* a_scratch = nullptr;
};
inline constexpr std::int64_t kTileRows = 192;  // of a tile that has this room
inline constexpr std::size_t kGroupScratch = kTileRows * kDepth * sizeof(double);

// f32 or f64. `scratch` holds kPanelScratch bytes.
void gemm_tile(DType dtype, const TileProduct& p, std::byte* scratch);

// Columns of a packed panel; a panel holds k rows of that many, zeros at the end.
std::int64_t gemm_panel(DType dtype);
// Packs all of `columns`, one panel after the other. Rows that lie along their columns
// are read through once: at most kPackedPanels panels, or writing them wears out the
// cache.
inline constexpr std::int64_t kPackedPanels = 4;
void gemm_pack(DType dtype, const MatrixStrides& s, const void* b, std::int64_t k,
               std::int64_t columns, void* to);

}  // namespace braintrace
