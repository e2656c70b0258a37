// SPDX-License-Identifier: Apache-2.0
#pragma once
// Derivatives by differences, in f64: the oracle no rule can share a mistake with.
#include <functional>
#include <vector>

#include "braintrace/array/array.h"

namespace braintrace::testing {

using ArraysFn = std::function<std::vector<Array>(const std::vector<Array>&)>;

inline constexpr double kStep = 1e-6;

// (f(x + h v) - f(x - h v)) / 2h for each output. A direction of another type than f64
// (integers) is not moved along; outputs that are not f64 give zeros.
std::vector<Array> directional_derivative(const ArraysFn& f, const std::vector<Array>& x,
                                          const std::vector<Array>& v, double h = kStep);

// a + scale * b for f64 arrays; a for others.
Array moved(const Array& a, double scale, const Array& b);

// Sum of the products of the elements, and of their absolute values.
struct Dot {
  double value = 0, magnitude = 0;
};
Dot dot_product(const std::vector<Array>& a, const std::vector<Array>& b);

}  // namespace braintrace::testing
