// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

constexpr std::int32_t kSubMin = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kSubMax = std::numeric_limits<std::int32_t>::max();

TEST_CASE("sub") {
  check_op({.op = "sub",
            .build = [](const Values& in) -> Values { return {sub(in[0], in[1])}; },
            .inputs = {uniform({3, 4}, -1, 1), uniform({3, 4}, -1, 1, 2)},
            .expect = {{{array({2, 3}, DType::f64), array({5, -1}, DType::f64)},
                        {array({-3, 4}, DType::f64)}}}});
}

TEST_CASE("sub broadcasts a column against a row") {
  check_op(
      {.op = "sub",
       .build = [](const Values& in) -> Values { return {sub(in[0], in[1])}; },
       .inputs = {uniform({3, 1}, -1, 1), uniform({2}, -1, 1, 2)},
       .expect = {{{array({3, 1}, {10, 20, 30}, DType::f64), array({1, 2}, DType::f64)},
                   {array({3, 2}, {9, 8, 19, 18, 29, 28}, DType::f64)}}}});
}

TEST_CASE("sub of integers wraps around") {
  CHECK(
      sub(Array::from<std::int32_t>({1}, {kSubMin}), Array::from<std::int32_t>({1}, {1}))
          .array() == Array::from<std::int32_t>({1}, {kSubMax}));
}

TEST_CASE("sub refuses booleans") {
  const Array b = ones({2}, DType::boolean);
  CHECK_THROWS_WITH_AS(sub(b, b), doctest::Contains("sub: needs numbers, got bool[2]"),
                       UserError);
}

TEST_CASE("sub refuses shapes that do not broadcast") {
  CHECK_THROWS_WITH_AS(sub(zeros({2}), zeros({3})),
                       doctest::Contains("sub: shapes [2] and [3] do not broadcast"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
