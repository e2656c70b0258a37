// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::kInf;
using testing::kNan;
using testing::uniform;

TEST_CASE("tanh") {
  check_op({.op = "tanh",
            .build = [](const Values& in) -> Values { return {tanh(in[0])}; },
            .inputs = {uniform({3, 4}, -2, 2)},
            .expect = {{{array({0.5}, DType::f64)},
                        {array({0.46211715726000974}, DType::f64)}}}});
}

TEST_CASE("tanh takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(tanh(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(tanh(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(tanh(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("tanh saturates at one") {
  const Array x = array({-kInf, 0, kInf, kNan}, DType::f64);
  CHECK(tanh(x).array() == array({-1, 0, 1, kNan}, DType::f64));
}

TEST_CASE("the tanh op refuses integers in a program") {
  CHECK_THROWS_WITH_AS(parse("in %0:i32[2]  %1:i32[2] = tanh %0  out %1"),
                       doctest::Contains("tanh: needs f32 or f64, got i32[2]"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
