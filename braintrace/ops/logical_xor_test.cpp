// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;

TEST_CASE("logical_xor") {
  check_op(
      {.op = "logical_xor",
       .build = [](const Values& in) -> Values { return {logical_xor(in[0], in[1])}; },
       .inputs = {array({1, 1, 0, 0}, DType::boolean),
                  array({1, 0, 1, 0}, DType::boolean)},
       .expect = {{{array({1, 1, 0, 0}, DType::boolean),
                    array({1, 0, 1, 0}, DType::boolean)},
                   {array({0, 1, 1, 0}, DType::boolean)}}},
       .differentiable = false});
}

TEST_CASE("logical_xor takes numbers as true unless they are 0") {
  const Value y = logical_xor(array({0.5, -1, 0, 0}), array({2, 0, 3, 0}, DType::i32));
  CHECK(y.array() == array({0, 1, 1, 0}, DType::boolean));
}

TEST_CASE("the logical_xor op refuses numbers in a program") {
  CHECK_THROWS_WITH_AS(parse("in %0:f32[2]  %1:bool[2] = logical_xor %0 %0  out %1"),
                       doctest::Contains("logical_xor: needs booleans, got f32[2]"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
