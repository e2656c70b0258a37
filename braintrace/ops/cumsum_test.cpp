// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("cumsum") {
  check_op({.op = "cumsum",
            .build = [](const Values& in) { return Values{cumsum(in[0], 1)}; },
            .inputs = {uniform({2, 3, 2}, -1, 1)},
            .expect = {{{array({1, 3, 1}, {1, 2, 3}, DType::f64)},
                        {array({1, 3, 1}, {1, 3, 6}, DType::f64)}}}});
  check_op({.op = "cumsum",
            .build = [](const Values& in) { return Values{cumsum(in[0], -1, true)}; },
            .inputs = {uniform({2, 3}, -1, 1)},
            .expect = {{{array({1, 3}, {1, 2, 3}, DType::f64)},
                        {array({1, 3}, {6, 5, 3}, DType::f64)}}}});
}

TEST_CASE("cumsum takes integers, booleans and empty arrays") {
  CHECK(cumsum(array({1, 2, 3}, DType::i32)).array() == array({1, 3, 6}, DType::i32));
  CHECK(cumsum(array({1, 0, 1}, DType::boolean)).array() == array({1, 1, 2}, DType::i32));
  CHECK(cumsum(zeros({2, 0})).shape() == Shape{2, 0});
  CHECK_THROWS_WITH_AS(cumsum(scalar(1)),
                       doctest::Contains("cumsum: axis -1 is out of range for rank 0"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
