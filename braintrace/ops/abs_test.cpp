// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::kInf;
using testing::kNan;

constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();

TEST_CASE("abs") {
  check_op(
      {.op = "abs",
       .build = [](const Values& in) -> Values { return {abs(in[0])}; },
       .inputs = {testing::distinct({3, 4})},
       .expect = {{{array({2, -3, 0}, DType::f64)}, {array({2, 3, 0}, DType::f64)}}}});
}

TEST_CASE("abs of integers keeps the one that has no opposite") {
  CHECK(abs(Array::from<std::int32_t>({3}, {3, -3, kLowest})).array() ==
        Array::from<std::int32_t>({3}, {3, 3, kLowest}));
}

TEST_CASE("abs keeps NaN and makes infinity positive") {
  const Array x = array({kNan, -kInf}, DType::f64);
  CHECK(abs(x).array() == array({kNan, kInf}, DType::f64));
}

TEST_CASE("abs refuses booleans") {
  const Array b = ones({2}, DType::boolean);
  CHECK_THROWS_WITH_AS(abs(b), doctest::Contains("abs: needs numbers, got bool[2]"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
