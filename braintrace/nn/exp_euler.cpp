// SPDX-License-Identifier: Apache-2.0
// Exponential Euler in terms of ops.
#include "braintrace/nn/exp_euler.h"

#include <fmt/core.h>

#include "braintrace/ops/ops.h"

namespace braintrace::nn {

Value phi(const Value& z) {
  // Below the border the quotient loses digits in its derivative; six terms of the series
  // are exact there to the last bit.
  const double border = z.dtype() == DType::f64 ? 1e-2 : 1e-1;
  const Value small = abs(z) <= border;
  const Value safe = select(small, ones_like(z), z);  // keeps 0/0 out of both branches
  const Value near = select(small, z, zeros_like(z));
  Value series = 1 + near / 7;
  for (int n = 6; n >= 2; --n) series = 1 + near / n * series;
  return select(small, series, expm1(safe) / safe);
}

Value exp_euler(const Value& x, const Drift& drift, double dt) {
  BT_REQUIRE_KIND(
      is_float(x.dtype()), ErrorKind::type,
      fmt::format("exp_euler: the state must be float, got {}", to_string(x.type())));
  if (!drift.slope) return x + dt * drift.f;
  return x + dt * phi(dt * *drift.slope) * drift.f;
}

namespace {

Coefficient gained(const Coefficient& left) {
  return map(left, [](double e) { return 1 - e; });
}

}  // namespace

Value relax(const Value& x, const Value& target, const Coefficient& left) {
  return scaled(x, left) + scaled(target, gained(left));
}

Value relax(const Value& x, const Coefficient& target, const Coefficient& left) {
  const Coefficient share =
      map(target, left, [](double c, double e) { return c * (1 - e); });
  return shifted(scaled(x, left), share);
}

}  // namespace braintrace::nn
