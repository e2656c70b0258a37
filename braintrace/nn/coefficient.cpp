// SPDX-License-Identifier: Apache-2.0
// Host arithmetic on the fixed numbers of an equation.
#include "braintrace/nn/coefficient.h"

#include <cmath>

#include <fmt/core.h>

#include "braintrace/ops/ops.h"

namespace braintrace::nn {

Arg Coefficient::with(const Value& x) const {
  if (is_scalar()) return {values_.item()};
  return {values_.astype(x.dtype())};
}

Coefficient map(const Coefficient& c, const std::function<double(double)>& f) {
  Array out = c.values().contiguous();
  double* p = out.mutable_data<double>();
  for (std::int64_t i = 0; i < out.size(); ++i) p[i] = f(p[i]);
  return out;
}

Coefficient map(const Coefficient& a, const Coefficient& b,
                const std::function<double(double, double)>& f) {
  const auto shape = broadcast_shapes(a.values().shape(), b.values().shape());
  BT_REQUIRE(shape,
             fmt::format("coefficients of shapes {} and {} do not broadcast",
                         to_string(a.values().shape()), to_string(b.values().shape())));
  Array out = a.values().broadcast_to(*shape).contiguous();
  const Array other = b.values().broadcast_to(*shape);
  double* p = out.mutable_data<double>();
  for (std::int64_t i = 0; i < out.size(); ++i) p[i] = f(p[i], other.at(i));
  return out;
}

Coefficient decay_of(double dt, const Coefficient& tau) {
  return map(tau, [dt](double t) { return std::exp(-dt / t); });
}

Value scaled(const Value& x, const Coefficient& c) {
  return c.is(1) ? x : mul(x, c.with(x));
}

Value shifted(const Value& x, const Coefficient& c) {
  return c.is(0) ? x : add(x, c.with(x));
}

void require_finite(std::string_view who, std::string_view name, const Coefficient& c,
                    const Shape& size) {
  BT_REQUIRE(broadcasts_to(c.values().shape(), size),
             fmt::format("{}: {} must be a number or broadcast to {}, got shape {}", who,
                         name, to_string(size), to_string(c.values().shape())));
  for (const double v : c.values().to_doubles())
    BT_REQUIRE(std::isfinite(v),
               fmt::format("{}: {} must be finite, got {}", who, name, v));
}

void require_positive(std::string_view who, std::string_view name, const Coefficient& c,
                      const Shape& size) {
  require_finite(who, name, c, size);
  for (const double v : c.values().to_doubles())
    BT_REQUIRE(v > 0, fmt::format("{}: {} must be positive, got {}", who, name, v));
}

}  // namespace braintrace::nn
