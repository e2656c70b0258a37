// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("concatenate") {
  check_op({.op = "concatenate",
            .build = [](const Values& in) { return Values{concat(in, 1)}; },
            .inputs = {uniform({2, 3}, -1, 1), uniform({2, 0}, -1, 1),
                       uniform({2, 1}, -1, 1, 2)},
            .expect = {{{array({2, 1}, {1, 2}, DType::f64),
                         array({2, 2}, {3, 4, 5, 6}, DType::f64)},
                        {array({2, 3}, {1, 3, 4, 2, 5, 6}, DType::f64)}}}});
  check_op({.op = "concatenate",
            .build = [](const Values& in) { return Values{concat(in, 0)}; },
            .inputs = {uniform({1, 2}, -1, 1), uniform({2, 2}, -1, 1, 2)}});
}

TEST_CASE("stack opens a new axis") {
  check_op({.op = "concatenate",
            .build = [](const Values& in) { return Values{stack(in, -1)}; },
            .inputs = {uniform({2}, -1, 1), uniform({2}, -1, 1, 2)},
            .expect = {{{array({1, 2}, DType::f64), array({3, 4}, DType::f64)},
                        {array({2, 2}, {1, 3, 2, 4}, DType::f64)}}}});
  CHECK_THROWS_WITH_AS(
      stack({zeros({2}), zeros({3})}),
      doctest::Contains("stack: parts must have one shape, got [2] and [3]"), UserError);
  CHECK_THROWS_WITH_AS(stack({}), doctest::Contains("stack: needs at least one part"),
                       UserError);
}

TEST_CASE("concat meets in the larger element type") {
  CHECK(concat({array({1}, DType::i32), array({0.5}, DType::f64)}).array() ==
        array({1, 0.5}, DType::f64));
}

TEST_CASE("parts of one element type keep it") {
  const Value half = array({1, 2}).astype(DType::bf16);
  CHECK(concat({half, half}).array() == array({1, 2, 1, 2}).astype(DType::bf16));
  CHECK(stack({half, half}, 1).dtype() == DType::bf16);
  CHECK(concat({half, Value(array({3}))}).dtype() == DType::f32);
}

TEST_CASE("concat refuses parts that differ along another axis") {
  CHECK_THROWS_WITH_AS(
      concat({zeros({2, 3}), zeros({3, 2})}, 0),
      doctest::Contains("concatenate: parts may differ along axis 0 only, got f32[2,3] "
                        "and f32[3,2]"),
      UserError);
  CHECK_THROWS_AS(concat({zeros({2}), zeros({2, 1})}, 0), UserError);
  CHECK_THROWS_AS(concat({scalar(1), scalar(2)}, 0), UserError);
  CHECK_THROWS_WITH_AS(concat({}), doctest::Contains("concat: needs at least one part"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
