// SPDX-License-Identifier: Apache-2.0
#include "braintrace/array/orthonormal.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/testing/every_target.h"
#include "braintrace/testing/tolerance.h"

namespace orthonormal_test {

using namespace braintrace;

namespace {

std::vector<double> drawn(std::int64_t rows, std::int64_t count) {
  std::vector<double> m(static_cast<std::size_t>(rows * count));
  for (std::size_t i = 0; i < m.size(); ++i) m[i] = normal_at(rng_key(3), i);
  return m;
}

double overlap(const std::vector<double>& m, std::int64_t rows, std::int64_t a,
               std::int64_t b) {
  double sum = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    sum += m[static_cast<std::size_t>(a * rows + i)] *
           m[static_cast<std::size_t>(b * rows + i)];
  return sum;
}

// The largest distance of two columns' overlap from what it should be.
double worst(const std::vector<double>& m, std::int64_t rows) {
  double bad = 0;
  const std::int64_t count = std::ssize(m) / rows;
  for (std::int64_t a = 0; a < count; ++a)
    for (std::int64_t b = 0; b <= a; ++b)
      bad = std::max(bad, std::abs(overlap(m, rows, a, b) - (a == b ? 1.0 : 0.0)));
  return bad;
}

}  // namespace

TEST_CASE("columns become orthonormal, for sizes around those of panels and vectors") {
  for (std::int64_t rows : {1, 2, 7, 8, 9, 17, 33, 64, 100})
    for (std::int64_t count : {1, 2, 15, 16, 17, 33, 64, 100}) {
      if (count > rows) continue;
      CAPTURE(rows);
      CAPTURE(count);
      std::vector<double> m = drawn(rows, count);
      orthonormalize(m, rows);
      CHECK(worst(m, rows) < tol::f64);
    }
}

TEST_CASE("each column keeps to the space of those up to it") {
  const std::int64_t rows = 20;
  const std::vector<double> before = drawn(rows, 3);
  std::vector<double> m = before;
  orthonormalize(m, rows);
  // What is left of the third one in front of all three is nothing.
  double left = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    double x = before[static_cast<std::size_t>(2 * rows + i)];
    for (std::int64_t c = 0; c < 3; ++c) {
      double shared = 0;
      for (std::int64_t k = 0; k < rows; ++k)
        shared += before[static_cast<std::size_t>(2 * rows + k)] *
                  m[static_cast<std::size_t>(c * rows + k)];
      x -= shared * m[static_cast<std::size_t>(c * rows + i)];
    }
    left = std::max(left, std::abs(x));
  }
  CHECK(left < tol::f64);
}

TEST_CASE("columns that nearly agree are cleaned twice") {
  const std::int64_t rows = 40, count = 24;
  std::vector<double> m = drawn(rows, count);
  for (std::size_t i = 0; i < m.size(); ++i)
    m[i] = m[i % static_cast<std::size_t>(rows)] + 1e-7 * m[i];
  orthonormalize(m, rows);
  CHECK(worst(m, rows) < 1e-7);  // 5e-2 where each is cleaned once
}

TEST_CASE("the bits do not depend on the instruction set") {
  std::vector<std::vector<double>> results;
  testing::on_every_target([&](const std::string&) {
    results.push_back(drawn(70, 50));
    orthonormalize(results.back(), 70);
  });
  for (const auto& r : results) CHECK((r == results[0]));
}

TEST_CASE("nothing is orthonormal") {
  std::vector<double> none;
  orthonormalize(none, 0);
  orthonormalize(none, 3);
  CHECK(none.empty());
}

}  // namespace orthonormal_test
