// SPDX-License-Identifier: Apache-2.0
// Sums, differences, products and quotients of initialisers, computed in double.
#include <functional>

#include "braintrace/nn/initializers.h"

namespace braintrace {
namespace {

template <class F>
Array combine(const Array& a, const Array& b, DType dtype, F f) {
  Array out = a.contiguous();
  double* p = out.mutable_data<double>();
  for (std::int64_t i = 0; i < out.size(); ++i) p[i] = f(p[i], b.at(i));
  return out.astype(dtype);
}

void require_both(const Initializer& a, const Initializer& b) {
  BT_REQUIRE(a && b, "initialiser arithmetic: both operands must be given, got none");
}

template <class F>
Initializer joined(Initializer a, Initializer b, F f) {
  require_both(a, b);
  return [a = std::move(a), b = std::move(b), f](RngKey key, const Shape& shape,
                                                 DType dtype) {
    return combine(a(fold_in(key, 0), shape, DType::f64),
                   b(fold_in(key, 1), shape, DType::f64), dtype, f);
  };
}

// f(drawn, number).
template <class F>
Initializer with_number(Initializer a, double number, F f) {
  require_both(a, a);
  return [a = std::move(a), number, f](RngKey key, const Shape& shape, DType dtype) {
    return combine(a(key, shape, DType::f64), full(shape, number, DType::f64), dtype, f);
  };
}

// The same with the operands in the other order.
template <class F>
auto swapped(F f) {
  return [f](double a, double b) { return f(b, a); };
}

}  // namespace

Initializer operator+(Initializer a, Initializer b) {
  return joined(std::move(a), std::move(b), std::plus<>());
}
Initializer operator-(Initializer a, Initializer b) {
  return joined(std::move(a), std::move(b), std::minus<>());
}
Initializer operator*(Initializer a, Initializer b) {
  return joined(std::move(a), std::move(b), std::multiplies<>());
}
Initializer operator/(Initializer a, Initializer b) {
  return joined(std::move(a), std::move(b), std::divides<>());
}

Initializer operator+(Initializer a, double b) {
  return with_number(std::move(a), b, std::plus<>());
}
Initializer operator-(Initializer a, double b) {
  return with_number(std::move(a), b, std::minus<>());
}
Initializer operator*(Initializer a, double b) {
  return with_number(std::move(a), b, std::multiplies<>());
}
Initializer operator/(Initializer a, double b) {
  return with_number(std::move(a), b, std::divides<>());
}

Initializer operator+(double a, Initializer b) { return std::move(b) + a; }
Initializer operator-(double a, Initializer b) {
  return with_number(std::move(b), a, swapped(std::minus<>()));
}
Initializer operator*(double a, Initializer b) { return std::move(b) * a; }
Initializer operator/(double a, Initializer b) {
  return with_number(std::move(b), a, swapped(std::divides<>()));
}

}  // namespace braintrace
