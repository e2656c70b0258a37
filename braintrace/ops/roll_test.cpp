// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("roll") {
  check_op({.op = "roll",
            .build = [](const Values& in) { return Values{roll(in[0], -1, 0)}; },
            .inputs = {uniform({3, 2}, -1, 1)}});
  check_op({.op = "roll",
            .build = [](const Values& in) { return Values{roll(in[0], 1)}; },
            .inputs = {uniform({2, 3}, -1, 1)},
            .expect = {{{array({2, 3}, {1, 2, 3, 4, 5, 6}, DType::f64)},
                        {array({2, 3}, {3, 1, 2, 6, 4, 5}, DType::f64)}}}});
}

TEST_CASE("roll takes any shift") {
  const Array x = array({1, 2, 3});
  CHECK(roll(x, 4).array() == array({3, 1, 2}));
  CHECK(roll(x, -4).array() == array({2, 3, 1}));
  CHECK(roll(x, 0).array() == x);
  CHECK(roll(zeros({0}), 5).shape() == Shape{0});
}

TEST_CASE("roll refuses an axis that does not exist") {
  CHECK_THROWS_WITH_AS(roll(zeros({2}), 1, 1),
                       doctest::Contains("roll: axis 1 is out of range for rank 1"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
