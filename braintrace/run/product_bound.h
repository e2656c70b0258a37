// SPDX-License-Identifier: Apache-2.0
#pragma once
// The time the matrix products of a program take alone: no plan can be faster.
#include <cstdint>
#include <vector>

#include "braintrace/ir/graph.h"

namespace braintrace {

// Products of one shape. `times`: how often one run of the program does them.
struct ProductShape {
  DType dtype = DType::f32;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  double times = 0;
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k) * static_cast<double>(batch) * times;
  }
};

// As the planned executor would run them, loops included.
std::vector<ProductShape> products_of(const Graph& g);
// Seconds all of them take, each shape timed on its own (best of a few).
double seconds_of_products(const std::vector<ProductShape>& products, int threads);

}  // namespace braintrace
