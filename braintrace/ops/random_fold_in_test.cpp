// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/array/rng.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;

Array key_from(std::uint64_t seed) { return key_array(rng_key(seed)); }

TEST_CASE("random_fold_in") {
  check_op(
      {.op = "random_fold_in",
       .build = [](const Values& in) { return Values{random_fold_in(in[0], in[1])}; },
       .inputs = {key_from(7), scalar(11, DType::i32)},
       .expect = {{{key_from(7), scalar(11, DType::i32)},
                   {key_array(fold_in(rng_key(7), 11))}}},
       .differentiable = false});
}

TEST_CASE("random_fold_in gives other keys for other data") {
  CHECK_FALSE(random_fold_in(key_from(1), 0).array() ==
              random_fold_in(key_from(1), 1).array());
  CHECK_FALSE(random_fold_in(key_from(1), -1).array() ==
              random_fold_in(key_from(1), 1).array());
  CHECK_FALSE(random_fold_in(key_from(1), 0).array() == key_from(1));
}

TEST_CASE("random_fold_in refuses data that is no i32 scalar") {
  CHECK_THROWS_WITH_AS(
      random_fold_in(key_from(1), array({1}, DType::i32)),
      doctest::Contains("random_fold_in: data must be an i32 scalar, got i32[1]"),
      UserError);
  CHECK_THROWS_AS(random_fold_in(scalar(1), 0), UserError);
}

}  // namespace
}  // namespace braintrace
