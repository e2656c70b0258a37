// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/finite_differences.h"

#include <cmath>

namespace braintrace::testing {

Array moved(const Array& a, double scale, const Array& b) {
  if (a.dtype() != DType::f64) return a;
  Array out = a.contiguous();
  double* p = out.mutable_data<double>();
  for (std::int64_t i = 0, n = out.size(); i < n; ++i) p[i] += scale * b.at(i);
  return out;
}

std::vector<Array> directional_derivative(const ArraysFn& f, const std::vector<Array>& x,
                                          const std::vector<Array>& v, double h) {
  std::vector<Array> up, down;
  for (std::size_t i = 0; i < x.size(); ++i) {
    up.push_back(moved(x[i], h, v[i]));
    down.push_back(moved(x[i], -h, v[i]));
  }
  const std::vector<Array> high = f(up), low = f(down);
  std::vector<Array> out;
  for (std::size_t i = 0; i < high.size(); ++i) {
    Array d(DType::f64, high[i].shape());
    if (high[i].dtype() == DType::f64) {
      double* p = d.mutable_data<double>();
      for (std::int64_t k = 0, n = d.size(); k < n; ++k)
        p[k] = (high[i].at(k) - low[i].at(k)) / (2 * h);
    }
    out.push_back(d);
  }
  return out;
}

Dot dot_product(const std::vector<Array>& a, const std::vector<Array>& b) {
  Dot d;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::int64_t k = 0, n = a[i].size(); k < n; ++k) {
      const double term = a[i].at(k) * b[i].at(k);
      d.value += term;
      d.magnitude += std::abs(term);
    }
  return d;
}

}  // namespace braintrace::testing
