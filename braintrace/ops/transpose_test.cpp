// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("transpose") {
  check_op({.op = "transpose",
            .build =
                [](const Values& in) {
                  return Values{transpose(in[0], {1, 2, 0})};
                },
            .inputs = {uniform({2, 3, 4}, -1, 1)}});
  check_op({.op = "transpose",
            .build = [](const Values& in) { return Values{transpose(in[0])}; },
            .inputs = {uniform({2, 3}, -1, 1)},
            .expect = {{{array({2, 3}, {1, 2, 3, 4, 5, 6}, DType::f64)},
                        {array({3, 2}, {1, 4, 2, 5, 3, 6}, DType::f64)}}}});
}

TEST_CASE("transpose takes negative axes and empty arrays") {
  CHECK(transpose(zeros({2, 0, 3}), {-1, 0, 1}).shape() == Shape{3, 2, 0});
  CHECK(transpose(scalar(1)).array() == scalar(1));
}

TEST_CASE("transpose refuses what is no permutation") {
  CHECK_THROWS_WITH_AS(
      transpose(zeros({2, 3}), {0, 0}),
      doctest::Contains(
          "transpose: [0,0] is not a permutation of the 2 axes of f32[2,3]"),
      UserError);
  CHECK_THROWS_AS(transpose(zeros({2, 3}), {1}), UserError);
  CHECK_THROWS_AS(transpose(zeros({2, 3}), {0, 2}), UserError);
}

}  // namespace
}  // namespace braintrace
