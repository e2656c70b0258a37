// SPDX-License-Identifier: Apache-2.0
#pragma once
// The instruction sets vector code is compiled for: the plain one, AVX2, AVX-512 and
// NEON. The others of Highway would cost build time and gain little. Include before
// any header of Highway.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
