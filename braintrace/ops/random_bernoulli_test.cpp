// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

Array key(std::uint64_t seed) { return key_array(rng_key(seed)); }

TEST_CASE("random_bernoulli") {
  check_op({.op = "random_bernoulli",
            .build =
                [](const Values& in) {
                  return Values{random_bernoulli(in[0], in[1], {3, 4})};
                },
            .inputs = {key(7), uniform({3, 4}, 0, 1)},
            .expect = {{{key(7), zeros({}, DType::f64)}, {zeros({3, 4}, DType::boolean)}},
                       {{key(7), ones({}, DType::f64)}, {ones({3, 4}, DType::boolean)}}},
            .differentiable = false});
}

TEST_CASE("random_bernoulli is true as often as p says") {
  constexpr int n = 100000;
  const double p = 0.3;
  const Array hits = random_bernoulli(key(3), p, {n}).array();
  double count = 0;
  for (double v : hits.to_doubles()) count += v;
  CHECK(std::abs(count / n - p) < 5 * std::sqrt(p * (1 - p) / n));
}

TEST_CASE("random_bernoulli is random_uniform below p") {
  const Array p = uniform({20}, 0, 1, 9);
  CHECK(random_bernoulli(key(4), p, {20}).array() ==
        (random_uniform(key(4), {20}, DType::f64) < p).array());
}

TEST_CASE("random_bernoulli with one key gives every lane the same numbers") {
  const Values in = {key(4), uniform({2, 5}, 0, 1)};
  const std::vector<BatchAxis> axes = {std::nullopt, 0};
  const Attrs attrs;
  const Value y =
      random_bernoulli_op.batch({random_bernoulli_op, in, {}, attrs, {}}, axes).values[0];
  for (std::int64_t i = 0; i < 2; ++i) {
    const Value p = squeeze(slice_axis(in[1], 0, i, 1), 0);
    CHECK(squeeze(slice_axis(y, 0, i, 1), 0).array() ==
          random_bernoulli(in[0], p, {5}).array());
  }
}

TEST_CASE("random_bernoulli refuses what is no key and shapes that do not fit") {
  CHECK_THROWS_WITH_AS(random_bernoulli(zeros({3}, DType::i32), 0.5, {2}),
                       doctest::Contains("random_bernoulli: key must be i32[2], got "
                                         "i32[3]"),
                       UserError);
  CHECK_THROWS_AS(random_bernoulli(key(1), zeros({3}), {2}), UserError);
}

}  // namespace
}  // namespace braintrace
