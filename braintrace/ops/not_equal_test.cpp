// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::kNan;
using testing::uniform;

TEST_CASE("not_equal") {
  check_op({.op = "not_equal",
            .build = [](const Values& in) -> Values { return {not_equal(in[0], in[1])}; },
            .inputs = {uniform({3, 4}, -1, 1), uniform({3, 4}, -1, 1, 2)},
            .expect = {{{array({1, 2, 3}, DType::f64), array({2, 2, 2}, DType::f64)},
                        {array({1, 0, 1}, DType::boolean)}}},
            .differentiable = false});
}

TEST_CASE("not_equal with NaN is true") {
  const Array x = array({kNan, kNan}), y = array({kNan, 1});
  CHECK(not_equal(x, y).array() == array({1, 1}, DType::boolean));
}

TEST_CASE("not_equal compares integers with floats and broadcasts") {
  const Value y = not_equal(array({1, 2, 3}, DType::i32), 2.0);
  CHECK(y.array() == array({1, 0, 1}, DType::boolean));
  CHECK(not_equal(zeros({0, 2}), zeros({2})).shape() == Shape{0, 2});
}

}  // namespace
}  // namespace braintrace
