// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::distinct;

TEST_CASE("argmax") {
  check_op({.op = "argmax",
            .build = [](const Values& in) { return Values{argmax(in[0], 1)}; },
            .inputs = {distinct({2, 3, 4})},
            .differentiable = false});
  check_op({.op = "argmax",
            .build = [](const Values& in) { return Values{argmax(in[0])}; },
            .inputs = {distinct({2, 3})},
            .expect = {{{array({2, 3}, {1, 3, 2, 4, 4, 1}, DType::f64)},
                        {array({1, 0}, DType::i32)}}},
            .differentiable = false});
}

TEST_CASE("argmax finds the first NaN and the first of equals") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(argmax(array({1, nan, 9, nan})).array() == scalar(1, DType::i32));
  CHECK(argmax(array({0, 1, 1}, DType::boolean)).array() == scalar(1, DType::i32));
}

TEST_CASE("argmax refuses an axis without elements") {
  CHECK_THROWS_WITH_AS(
      argmax(zeros({2, 0})),
      doctest::Contains("argmax: axis 1 of f32[2,0] must have 1 to 2^31-1 elements"),
      UserError);
  CHECK(argmax(zeros({0, 2})).shape() == Shape{0});
}

}  // namespace
}  // namespace braintrace
