// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("select") {
  check_op(
      {.op = "select",
       .build = [](const Values& in) -> Values { return {select(in[0], in[1], in[2])}; },
       .inputs = {array({3}, {1, 0, 1}, DType::boolean), uniform({3}, -1, 1),
                  uniform({3}, -1, 1, 2)},
       .expect = {{{array({1, 0}, DType::boolean), array({1, 2}, DType::f64),
                    array({3, 4}, DType::f64)},
                   {array({1, 4}, DType::f64)}}}});
}

TEST_CASE("select broadcasts condition and choices") {
  check_op({.op = "select",
            .build = [](const Values& in) -> Values { return {select(in[0], in[1], 0)}; },
            .inputs = {array({2, 1}, {1, 0}, DType::boolean), uniform({3}, -1, 1)}});
}

TEST_CASE("select does not touch the choice it leaves") {
  const Array x = array({4, 0});
  CHECK(select(x > 0, 1 / Value(x), 7).array() == array({0.25, 7}));
}

TEST_CASE("select takes the type of its choices and promotes them") {
  const Value y = select(array({1, 0}), array({1, 2}, DType::i32), array({0.5, 0.5}));
  CHECK(y.array() == array({1, 0.5}));
  CHECK(select(zeros({0}), zeros({0}), 1).shape() == Shape{0});
}

TEST_CASE("the select op refuses a condition of numbers and choices of two types") {
  CHECK_THROWS_WITH_AS(
      parse("in %0:f32[2]  %1:f32[2] = select %0 %0 %0  out %1"),
      doctest::Contains("select: the condition must be boolean, got f32[2]"), UserError);
  CHECK_THROWS_WITH_AS(
      parse("in %0:bool[2] %1:f32[2] %2:f32[3]  %3:f32[2] = select %0 %1 %2  out %3"),
      doctest::Contains("select: needs one shape and equal choices"), UserError);
}

}  // namespace
}  // namespace braintrace
