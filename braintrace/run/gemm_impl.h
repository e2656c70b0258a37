// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products on one thread, for kernels that make their own tiles.
#include <cstddef>

#include "braintrace/run/gemm.h"

namespace braintrace {

// Room gemm_serial needs.
inline constexpr std::size_t kGemmScratch = std::size_t{1} << 18;

// As gemm, for batch 1 and on the calling thread: the same bits.
void gemm_serial(const GemmSpec& spec, const void* a, const void* b, void* c,
                 const void* bias, std::byte* scratch);
// As gemm_packed, likewise.
void gemm_packed_serial(const GemmSpec& spec, const void* a, const void* packed, void* c,
                        const void* bias, std::byte* scratch);

}  // namespace braintrace
