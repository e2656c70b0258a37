// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/simd_math.h"

#include <cmath>

namespace braintrace {
namespace {

template <class T>
T sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return (x < 0 ? e : T(1)) / (T(1) + e);
}

template <class T>
T softplus(T x) {
  return (x > 0 ? x : T(0)) + std::log1p(std::exp(-std::abs(x)));
}

template <class T>
T value(SimdFn f, T x) {
  switch (f) {
    case SimdFn::exp:
      return std::exp(x);
    case SimdFn::expm1:
      return std::expm1(x);
    case SimdFn::log:
      return std::log(x);
    case SimdFn::log1p:
      return std::log1p(x);
    case SimdFn::tanh:
      return std::tanh(x);
    case SimdFn::sigmoid:
      return sigmoid(x);
    case SimdFn::softplus:
      return softplus(x);
    case SimdFn::erf:
      return std::erf(x);
    case SimdFn::sin:
      return std::sin(x);
    case SimdFn::cos:
      return std::cos(x);
  }
  return x;
}

}  // namespace

void simd_math(SimdFn f, const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = value(f, x[i]);
}
void simd_math(SimdFn f, const double* x, double* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = value(f, x[i]);
}
void simd_pow(const float* a, const float* b, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = std::pow(a[i], b[i]);
}
void simd_pow(const double* a, const double* b, double* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = std::pow(a[i], b[i]);
}

}  // namespace braintrace
