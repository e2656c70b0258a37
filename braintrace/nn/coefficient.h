// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fixed number of an equation: one for the whole population, or one per unit.
// Kept in double; meets a value in that value's element type.
#include <functional>
#include <string_view>

#include "braintrace/ir/value.h"

namespace braintrace::nn {

class Coefficient {
 public:
  Coefficient(double value) : values_(scalar(value, DType::f64)) {}         // NOLINT
  Coefficient(const Array& values) : values_(values.astype(DType::f64)) {}  // NOLINT
  Coefficient(std::initializer_list<double> v) : values_(array(v, DType::f64)) {}

  bool is_scalar() const { return values_.rank() == 0; }
  bool is(double value) const { return is_scalar() && values_.item() == value; }
  const Array& values() const { return values_; }

  // As an operand next to `x`.
  Arg with(const Value& x) const;

 private:
  Array values_;
};

Coefficient map(const Coefficient& c, const std::function<double(double)>& f);
Coefficient map(const Coefficient& a, const Coefficient& b,
                const std::function<double(double, double)>& f);

// exp(-dt / tau), the share of a state that is left after dt.
Coefficient decay_of(double dt, const Coefficient& tau);

// c * x and x + c; the neutral c emits nothing.
Value scaled(const Value& x, const Coefficient& c);
Value shifted(const Value& x, const Coefficient& c);

// UserError naming `who` and `name` unless every entry is finite (and above zero), and
// the coefficient broadcasts to the population's shape.
void require_finite(std::string_view who, std::string_view name, const Coefficient& c,
                    const Shape& size);
void require_positive(std::string_view who, std::string_view name, const Coefficient& c,
                      const Shape& size);

}  // namespace braintrace::nn
