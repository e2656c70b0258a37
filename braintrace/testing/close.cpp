// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/close.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "braintrace/ir/type.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::testing {
namespace {

double relative_error(double got, double want) {
  if (std::isnan(got) && std::isnan(want)) return 0;
  if (got == want) return 0;
  if (!std::isfinite(got) || !std::isfinite(want))
    return std::numeric_limits<double>::infinity();
  return std::abs(got - want) / std::max(1.0, std::abs(want));
}

}  // namespace

Worst worst_error(const Array& got, const Array& want) {
  Worst w;
  const std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  BT_REQUIRE(a.size() == b.size(),
             fmt::format("worst_error: {} and {} elements", a.size(), b.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double e = relative_error(a[i], b[i]);
    if (i == 0 || e > w.error) w = {e, static_cast<std::int64_t>(i), a[i], b[i]};
  }
  return w;
}

double check_close(const std::string& what, const Array& got, const Array& want,
                   double tolerance) {
  const Type g = type_of(got), w = type_of(want);
  if (g != w)
    throw CheckFailure(
        fmt::format("{}: type {} instead of {}", what, to_string(g), to_string(w)));
  const Worst worst = worst_error(got, want);
  if (worst.error <= tolerance) return worst.error;
  throw CheckFailure(
      fmt::format("{}: at {} got {}, want {} (error {:.3g}, allowed {:.3g})", what,
                  to_string(unravel(worst.position, got.shape())), worst.got, worst.want,
                  worst.error, tolerance));
}

double value_tolerance(DType dtype) {
  if (dtype == DType::f64) return tol::f64;
  return dtype == DType::f32 ? tol::f32 : 0;
}

Ints unravel(std::int64_t position, const Shape& shape) {
  Ints index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = position % shape[i];
    position /= shape[i];
  }
  return index;
}

}  // namespace braintrace::testing
