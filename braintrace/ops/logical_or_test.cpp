// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;

TEST_CASE("logical_or") {
  check_op(
      {.op = "logical_or",
       .build = [](const Values& in) -> Values { return {logical_or(in[0], in[1])}; },
       .inputs = {array({1, 1, 0, 0}, DType::boolean),
                  array({1, 0, 1, 0}, DType::boolean)},
       .expect = {{{array({1, 1, 0, 0}, DType::boolean),
                    array({1, 0, 1, 0}, DType::boolean)},
                   {array({1, 1, 1, 0}, DType::boolean)}}},
       .differentiable = false});
}

TEST_CASE("logical_or takes numbers as true unless they are 0") {
  const Value y = logical_or(array({0.5, -1, 0, 0}), array({2, 0, 3, 0}, DType::i32));
  CHECK(y.array() == array({1, 1, 1, 0}, DType::boolean));
}

TEST_CASE("the logical_or op refuses numbers in a program") {
  CHECK_THROWS_WITH_AS(parse("in %0:f32[2]  %1:bool[2] = logical_or %0 %0  out %1"),
                       doctest::Contains("logical_or: needs booleans, got f32[2]"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
