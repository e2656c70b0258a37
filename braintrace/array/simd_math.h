// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementary functions over arrays, for the interpreter and the planned executor alike:
// one definition, so that both give the same bits. At most 4 ulp from the true value;
// NaN, infinities, zeros and poles as in libm. An element's result depends on its value
// and the machine, never on its place.
#include <cstddef>
#include <cstdint>

namespace braintrace {

enum class SimdFn : std::uint8_t {
  exp,
  expm1,
  log,
  log1p,
  tanh,
  sigmoid,   // 1 / (1 + e^-x)
  softplus,  // ln(1 + e^x)
  erf,
  sin,
  cos,
};
inline constexpr int kNumSimdFns = 10;

// y may be x.
void simd_math(SimdFn f, const float* x, float* y, std::size_t n);
void simd_math(SimdFn f, const double* x, double* y, std::size_t n);

// y = a^b; y may be a or b.
void simd_pow(const float* a, const float* b, float* y, std::size_t n);
void simd_pow(const double* a, const double* b, double* y, std::size_t n);

}  // namespace braintrace
