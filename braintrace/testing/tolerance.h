// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named tolerances: tests never spell a number.
namespace braintrace::tol {

inline constexpr double f64 = 1e-12;      // same formula, another order of sums
inline constexpr double f32 = 1e-5;       // same, in float
inline constexpr double f64_diff = 1e-6;  // against central differences with step 1e-6
inline constexpr double f32_grad = 1e-4;
inline constexpr double f64_golden = 1e-10;  // recorded float64 runs
inline constexpr double golden = 1e-5;       // recorded float32 runs

}  // namespace braintrace::tol
