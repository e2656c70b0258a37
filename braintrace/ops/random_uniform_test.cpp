// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;

TEST_CASE("random_uniform") {
  check_op({.op = "random_uniform",
            .build =
                [](const Values& in) {
                  return Values{random_uniform(in[0], {2, 3}, DType::f64)};
                },
            .inputs = {key_array(rng_key(7))},
            .expect = {{{key_array(rng_key(7))},
                        {random_uniform(rng_key(7), {2, 3}, 0, 1, DType::f64)}}},
            .differentiable = false});
}

TEST_CASE("random_uniform has the right mean and variance") {
  constexpr int n = 100000;
  const auto x =
      random_uniform(key_array(rng_key(3)), {n}, DType::f64).array().to_doubles();
  double total = 0, squares = 0;
  for (double v : x) total += v;
  const double average = total / n;
  for (double v : x) squares += (v - average) * (v - average);
  const double variance = squares / n;
  // Five standard errors; the variance of the squares is 1.0 / 180.
  CHECK(std::abs(average - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(std::abs(variance - 1.0 / 12) < 5 * std::sqrt(1.0 / 180 / n));
}

TEST_CASE("random_uniform draws element i from the key and i alone") {
  const Array key = key_array(rng_key(5));
  const Array all = random_uniform(key, {4, 3}, DType::f64).array();
  CHECK(random_uniform(key, {12}, DType::f64).array() == all.reshaped({12}));
  CHECK(random_uniform(key, {5}, DType::f64).array() ==
        all.reshaped({12}).sliced({0}, {5}, {1}).contiguous());
  CHECK(random_uniform(key, {4, 3}).array() == all.astype(DType::f32));
  CHECK_FALSE(random_uniform(key_array(rng_key(6)), {4, 3}, DType::f64).array() == all);
}

TEST_CASE("random_uniform draws nothing into an empty shape") {
  CHECK(random_uniform(key_array(rng_key(5)), {0, 3}).shape() == Shape{0, 3});
}

TEST_CASE("random_uniform refuses what is no key, no shape or no float") {
  const Array key = key_array(rng_key(5));
  CHECK_THROWS_WITH_AS(
      random_uniform(zeros({2}), {2}),
      doctest::Contains("random_uniform: key must be i32[2], got f32[2]"), UserError);
  CHECK_THROWS_AS(random_uniform(key, {-1}), UserError);
  CHECK_THROWS_WITH_AS(
      random_uniform(key, {1}, DType::i32),
      doctest::Contains("random_uniform: dtype must be f32 or f64, got i32"), UserError);
}

}  // namespace
}  // namespace braintrace
