// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/initializers.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::initializers_test {
namespace {

constexpr double sampling_error = 0.03;  // of moments of 20000 draws

Array draw(const Initializer& f, Shape shape, DType dtype = DType::f64) {
  return f(rng_key(3), shape, dtype);
}

double variance(const Array& a) {
  double total = 0, square = 0;
  for (double v : a.to_doubles()) total += v, square += v * v;
  const double n = static_cast<double>(a.size());
  return square / n - (total / n) * (total / n);
}

double largest(const Array& a) {
  double m = 0;
  for (double v : a.to_doubles()) m = std::max(m, std::abs(v));
  return m;
}

}  // namespace

TEST_CASE("fans come from the last two axes, or from (out, in, *spatial)") {
  using init::FanAxes;
  const init::Fans last = init::fans({3, 3, 2, 5}, FanAxes::last_two);
  CHECK(last.in == 18);
  CHECK(last.out == 45);
  const init::Fans first = init::fans({3, 3, 2, 5}, FanAxes::first_two);
  CHECK(first.in == 30);
  CHECK(first.out == 30);
  CHECK(init::fans({4, 6}, FanAxes::first_two).in == 4);
  CHECK(init::fans({7}, FanAxes::last_two).in == 7);
}

TEST_CASE("scaled initialisers have the variance of their law") {
  const Shape shape = {100, 200};
  const struct {
    Initializer init;
    double variance;
  } laws[] = {
      {init::kaiming_normal(), 2.0 / 100},
      {init::kaiming_normal(init::plain()), 2.0 / 100},
      {init::kaiming_normal(init::plain(6)), 6.0 / 100},
      {init::kaiming_uniform(), 2.0 / 100},
      {init::xavier_normal(), 1.0 / 150},
      {init::xavier_normal(init::plain()), 1.0 / 150},
      {init::xavier_uniform(), 1.0 / 150},
      {init::lecun_normal(), 1.0 / 100},
      {init::lecun_uniform(init::plain()), 1.0 / 100},
  };
  for (const auto& law : laws)
    CHECK(variance(draw(law.init, shape)) ==
          doctest::Approx(law.variance).epsilon(sampling_error));
}

TEST_CASE("truncated draws end at two deviations, plain ones do not") {
  const double deviation = std::sqrt(2.0 / 100) / 0.87962566103423978;
  CHECK(largest(draw(init::kaiming_normal(), {100, 200})) <= 2 * deviation);
  CHECK(largest(draw(init::kaiming_normal(init::plain()), {100, 200})) > 2 * deviation);
  CHECK(largest(draw(init::truncated_normal(0, 3), {1000})) <= 6);
}

TEST_CASE("orthogonal gives orthonormal columns, or rows when there are fewer") {
  for (const Shape& shape : {Shape{5, 3}, Shape{3, 5}, Shape{4, 4}}) {
    const Array a = draw(init::orthogonal(2), shape);
    const std::int64_t rows = shape[0], cols = shape[1], n = std::min(rows, cols);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double product = 0;
        for (std::int64_t k = 0; k < std::max(rows, cols); ++k)
          product += rows >= cols ? a.at(k * cols + i) * a.at(k * cols + j)
                                  : a.at(i * cols + k) * a.at(j * cols + k);
        CHECK(std::abs(product - (i == j ? 4.0 : 0.0)) < tol::f64);
      }
    }
  }
}

TEST_CASE("fixed initialisers give what they say") {
  CHECK(draw(init::zero(), {2}) == zeros({2}, DType::f64));
  CHECK(draw(init::constant(3), {2}) == full({2}, 3, DType::f64));
  CHECK(draw(init::identity(2), {2, 3}) == array({2, 3}, {2, 0, 0, 0, 2, 0}, DType::f64));
  CHECK(draw(init::given(array({1, 2}, DType::f64)), {2, 2}) ==
        array({2, 2}, {1, 2, 1, 2}, DType::f64));
  const Array u = draw(init::uniform(2, 3), {1000});
  CHECK(variance(u) == doctest::Approx(1.0 / 12).epsilon(0.1));
  CHECK(largest(u) < 3);
  CHECK(variance(draw(init::normal(5, 2), {20000})) ==
        doctest::Approx(4).epsilon(sampling_error));
}

TEST_CASE("a draw does not depend on the element type") {
  const Array exact = draw(init::lecun_normal(), {4, 4});
  CHECK(draw(init::lecun_normal(), {4, 4}, DType::f32) == exact.astype(DType::f32));
}

TEST_CASE("initialisers refuse what they cannot do") {
  CHECK_THROWS_WITH_AS(init::kaiming_normal({.scale = -1}),
                       "init::kaiming_normal: scale must be >= 0 and finite, got -1",
                       UserError);
  CHECK_THROWS_WITH_AS(init::uniform(2, 1),
                       "init::uniform: low must be <= high, got 2 and 1", UserError);
  CHECK_THROWS_WITH_AS(draw(init::orthogonal(), {3}),
                       "init::orthogonal: needs rank >= 2, got [3]", UserError);
  CHECK_THROWS_WITH_AS(draw(init::identity(), {3}),
                       "init::identity: needs rank 2, got [3]", UserError);
  CHECK_THROWS_WITH_AS(draw(init::given(zeros({3})), {2}),
                       "init::given: [3] does not broadcast to [2]", UserError);
}

TEST_CASE("initialisers add, subtract, multiply and divide by numbers") {
  const Initializer u = init::uniform(1, 2);
  const Array base = draw(u, {50});
  const auto each = [&](const Initializer& f, double (*want)(double)) {
    const Array got = draw(f, {50});
    bool same = true;
    for (std::int64_t i = 0; i < 50; ++i) same = same && got.at(i) == want(base.at(i));
    return same;
  };
  CHECK(each(u + 3, [](double x) { return x + 3; }));
  CHECK(each(3 + u, [](double x) { return x + 3; }));
  CHECK(each(u - 3, [](double x) { return x - 3; }));
  CHECK(each(3 - u, [](double x) { return 3 - x; }));
  CHECK(each(u * 3, [](double x) { return x * 3; }));
  CHECK(each(3 * u, [](double x) { return x * 3; }));
  CHECK(each(u / 3, [](double x) { return x / 3; }));
  CHECK(each(3 / u, [](double x) { return 3 / x; }));
  CHECK(draw(2 * u, {2}, DType::f32).dtype() == DType::f32);
}

TEST_CASE("two initialisers meet element by element, each with draws of its own") {
  const Initializer n = init::normal();
  CHECK(variance(draw(n + n, {20000})) == doctest::Approx(2).epsilon(sampling_error));
  CHECK(variance(draw(n - n, {20000})) == doctest::Approx(2).epsilon(sampling_error));
  CHECK(draw(init::constant(6) * init::constant(4), {1}).item() == 24);
  CHECK(draw(init::constant(6) / init::constant(4), {1}).item() == 1.5);
  const Array near = draw(init::identity() + 0.01 * init::uniform(), {2, 2});
  CHECK(near.at(0) >= 1);
  CHECK(near.at(1) < 0.01);
  CHECK_THROWS_WITH_AS(n + Initializer(),
                       "initialiser arithmetic: both operands must be given, got none",
                       UserError);
}

}  // namespace braintrace::nn::initializers_test
