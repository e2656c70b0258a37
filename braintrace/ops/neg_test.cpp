// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

constexpr std::int32_t kNegMin = std::numeric_limits<std::int32_t>::min();

TEST_CASE("neg") {
  check_op({.op = "neg",
            .build = [](const Values& in) -> Values { return {neg(in[0])}; },
            .inputs = {uniform({3, 4}, -2, 2)},
            .expect = {{{array({2, -3}, DType::f64)}, {array({-2, 3}, DType::f64)}}}});
}

TEST_CASE("neg of integers wraps around") {
  CHECK(neg(Array::from<std::int32_t>({2}, {3, kNegMin})).array() ==
        Array::from<std::int32_t>({2}, {-3, kNegMin}));
}

TEST_CASE("neg flips zero and infinity") {
  const Value y = neg(array({0, 1}) / array({1, 0}));
  CHECK(y.array() == array({-0.0, -std::numeric_limits<double>::infinity()}));
}

TEST_CASE("neg refuses booleans") {
  const Array b = ones({2}, DType::boolean);
  CHECK_THROWS_WITH_AS(neg(b), doctest::Contains("neg: needs numbers, got bool[2]"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
