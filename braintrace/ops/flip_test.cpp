// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("flip") {
  check_op({.op = "flip",
            .build =
                [](const Values& in) {
                  return Values{flip(in[0], {0, -1})};
                },
            .inputs = {uniform({2, 3, 4}, -1, 1)}});
  check_op({.op = "flip",
            .build = [](const Values& in) { return Values{flip(in[0], {1})}; },
            .inputs = {uniform({2, 3}, -1, 1)},
            .expect = {{{array({2, 3}, {1, 2, 3, 4, 5, 6}, DType::f64)},
                        {array({2, 3}, {3, 2, 1, 6, 5, 4}, DType::f64)}}}});
}

TEST_CASE("flip takes empty arrays and any element type") {
  CHECK(flip(zeros({0, 2}), {0}).shape() == Shape{0, 2});
  CHECK(flip(array({1, 0, 0}, DType::boolean), {0}).array() ==
        array({0, 0, 1}, DType::boolean));
  CHECK(flip(array({1, 2}), {}).array() == array({1, 2}));
}

TEST_CASE("flip refuses axes that do not exist or repeat") {
  CHECK_THROWS_WITH_AS(flip(zeros({2}), {1}),
                       doctest::Contains("flip: axis 1 is out of range for rank 1"),
                       UserError);
  CHECK_THROWS_AS(flip(zeros({2}), {0, -1}), UserError);
}

}  // namespace
}  // namespace braintrace
