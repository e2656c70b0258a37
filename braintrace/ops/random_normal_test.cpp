// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;

TEST_CASE("random_normal") {
  check_op({.op = "random_normal",
            .build =
                [](const Values& in) {
                  return Values{random_normal(in[0], {2, 3}, DType::f64)};
                },
            .inputs = {key_array(rng_key(7))},
            .expect = {{{key_array(rng_key(7))},
                        {random_normal(rng_key(7), {2, 3}, DType::f64)}}},
            .differentiable = false});
}

TEST_CASE("random_normal has the right mean and variance") {
  constexpr int n = 100000;
  const auto x =
      random_normal(key_array(rng_key(3)), {n}, DType::f64).array().to_doubles();
  double total = 0, squares = 0;
  for (double v : x) total += v;
  const double average = total / n;
  for (double v : x) squares += (v - average) * (v - average);
  const double variance = squares / n;
  // Five standard errors; the variance of the squares is 2.0.
  CHECK(std::abs(average - 0.0) < 5 * std::sqrt(1.0 / n));
  CHECK(std::abs(variance - 1.0) < 5 * std::sqrt(2.0 / n));
}

TEST_CASE("random_normal draws element i from the key and i alone") {
  const Array key = key_array(rng_key(5));
  const Array all = random_normal(key, {4, 3}, DType::f64).array();
  CHECK(random_normal(key, {12}, DType::f64).array() == all.reshaped({12}));
  CHECK(random_normal(key, {5}, DType::f64).array() ==
        all.reshaped({12}).sliced({0}, {5}, {1}).contiguous());
  CHECK(random_normal(key, {4, 3}).array() == all.astype(DType::f32));
  CHECK_FALSE(random_normal(key_array(rng_key(6)), {4, 3}, DType::f64).array() == all);
}

TEST_CASE("random_normal draws nothing into an empty shape") {
  CHECK(random_normal(key_array(rng_key(5)), {0, 3}).shape() == Shape{0, 3});
}

TEST_CASE("random_normal refuses what is no key, no shape or no float") {
  const Array key = key_array(rng_key(5));
  CHECK_THROWS_WITH_AS(random_normal(zeros({2}), {2}),
                       doctest::Contains("random_normal: key must be i32[2], got f32[2]"),
                       UserError);
  CHECK_THROWS_AS(random_normal(key, {-1}), UserError);
  CHECK_THROWS_WITH_AS(
      random_normal(key, {1}, DType::i32),
      doctest::Contains("random_normal: dtype must be f32 or f64, got i32"), UserError);
}

}  // namespace
}  // namespace braintrace
