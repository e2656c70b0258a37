// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("reduce_sum") {
  check_op({.op = "reduce_sum",
            .build =
                [](const Values& in) {
                  return Values{sum(in[0], {.axes = {0, 2}})};
                },
            .inputs = {uniform({2, 3, 4}, -1, 1)}});
  check_op({.op = "reduce_sum",
            .build =
                [](const Values& in) {
                  return Values{sum(in[0], {.axes = {-2}, .keepdims = true})};
                },
            .inputs = {uniform({2, 3}, -1, 1)},
            .expect = {{{array({2, 2}, {1, 2, 3, 4}, DType::f64)},
                        {array({1, 2}, {4, 6}, DType::f64)}}}});
}

TEST_CASE("sum without axes adds everything") {
  CHECK(sum(array({2, 2}, {1, 2, 3, 4})).array() == scalar(10));
  CHECK(sum(scalar(3)).array() == scalar(3));
  CHECK(sum(array({2, 2}, {1, 2, 3, 4}), {.keepdims = true}).shape() == Shape{1, 1});
}

TEST_CASE("sum of nothing is zero") {
  CHECK(sum(zeros({2, 0}), {.axes = {1}}).array() == zeros({2}));
  CHECK(sum(zeros({2, 0}), {.axes = {0}}).shape() == Shape{0});
}

TEST_CASE("sum counts booleans and wraps integers") {
  CHECK(sum(array({1, 0, 1}, DType::boolean)).array() == scalar(2, DType::i32));
  CHECK(sum(array({2147483647, 1}, DType::i32)).array() ==
        scalar(-2147483648.0, DType::i32));
}

TEST_CASE("sum of floats does not lose small terms") {
  CHECK(sum(array({16777216, 1, 1, -16777216})).array() == scalar(2));
}

TEST_CASE("sum refuses axes that do not exist or repeat") {
  CHECK_THROWS_WITH_AS(sum(zeros({2}), {.axes = {1}}),
                       doctest::Contains("reduce_sum: axis 1 is out of range for rank 1"),
                       UserError);
  CHECK_THROWS_AS(sum(zeros({2, 2}), {.axes = {0, -2}}), UserError);
}

TEST_CASE("reductions in program text need sorted, distinct axes in range") {
  const std::vector<Type> in = {{DType::f32, {2, 2}}};
  for (const Ints& axes : {Ints{1, 0}, Ints{0, 0}, Ints{-1}, Ints{2}, Ints{0, 9, 1}})
    CHECK_THROWS_WITH_AS(
        infer_types(reduce_sum_op, in, {{"axes", axes}}),
        doctest::Contains("reduce_sum: axes must be sorted, distinct axes of f32[2,2]"),
        UserError);
}

}  // namespace
}  // namespace braintrace
