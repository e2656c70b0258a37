// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dense products whose left factor is mostly zero (spikes).
#include "braintrace/run/gemm.h"

namespace braintrace {

// As gemm. Lists the nonzeros of A first: below the break-even density it adds rows of B
// for them, otherwise it is gemm; each matrix of a batch, and a long k part by part, is
// decided by itself. The choice hangs on A alone, so the same A gives the same bits at
// any number of threads. Zeros of A then do not meet infinities of B. Needs: f32 or f64,
// unit column strides in B and C; otherwise it is gemm.
void gemm_events(const GemmSpec& spec, const void* a, const void* b, void* c,
                 ThreadPool& pool, const void* bias = nullptr);
// The same for batch 1 on the calling thread, with the scratch of one worker.
void gemm_events_serial(const GemmSpec& spec, const void* a, const void* b, void* c,
                        const void* bias, std::byte* scratch);

// B in tiles of columns, each a stretch of memory, for use with many A: the same bits.
// 0 bytes: there is no such form. Needs one matrix B.
std::size_t tiled_b_bytes(const GemmSpec& spec);
void tile_b(const GemmSpec& spec, const void* b, void* tiled, ThreadPool& pool);
void gemm_events_tiled(const GemmSpec& spec, const void* a, const void* tiled, void* c,
                       ThreadPool& pool, const void* bias = nullptr);
void gemm_events_tiled_serial(const GemmSpec& spec, const void* a, const void* tiled,
                              void* c, const void* bias, std::byte* scratch);

// Nonzeros of A, divided by its size, below which rows are added.
inline constexpr double kEventDensity = 0.45;

}  // namespace braintrace
