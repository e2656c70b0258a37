// SPDX-License-Identifier: Apache-2.0
#pragma once
// What reduce_max and reduce_min share.
#include <limits>

#include "braintrace/ops/reduce.h"

namespace braintrace {

// The elements that reach the extreme share the derivative equally.
std::vector<Tangent> extreme_jvp(const Site& s, std::span<const Tangent> dx);

// better(a, b): a comes before b. A NaN wins over everything; no elements give `none`.
template <class Better>
void eval_extreme(const Kernel& k, double none, Better better) {
  const ReductionRows r = rows_of(k);
  visit_dtype(k.out[0].dtype(), [&]<class T>(T) {
    const T* x = r.packed.data<T>();
    T* y = k.out[0].mutable_data<T>();
    for (std::int64_t i = 0; i < r.rows; ++i) {
      T best = r.n > 0 ? x[i * r.n] : static_cast<T>(none);
      for (std::int64_t j = 1; j < r.n; ++j) {
        const T v = x[i * r.n + j];
        if (v != v || better(v, best)) best = v;
      }
      y[i] = best;
    }
  });
}

}  // namespace braintrace
