// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

constexpr std::int32_t kMulMax = std::numeric_limits<std::int32_t>::max();

TEST_CASE("mul") {
  check_op({.op = "mul",
            .build = [](const Values& in) -> Values { return {mul(in[0], in[1])}; },
            .inputs = {uniform({3, 4}, -1, 1), uniform({3, 4}, -1, 1, 2)},
            .expect = {{{array({2, 3}, DType::f64), array({5, -1}, DType::f64)},
                        {array({10, -3}, DType::f64)}}}});
}

TEST_CASE("mul broadcasts a column against a row") {
  check_op(
      {.op = "mul",
       .build = [](const Values& in) -> Values { return {mul(in[0], in[1])}; },
       .inputs = {uniform({3, 1}, -1, 1), uniform({2}, -1, 1, 2)},
       .expect = {{{array({3, 1}, {10, 20, 30}, DType::f64), array({1, 2}, DType::f64)},
                   {array({3, 2}, {10, 20, 20, 40, 30, 60}, DType::f64)}}}});
}

TEST_CASE("mul of integers wraps around") {
  CHECK(
      mul(Array::from<std::int32_t>({1}, {kMulMax}), Array::from<std::int32_t>({1}, {2}))
          .array() == Array::from<std::int32_t>({1}, {-2}));
}

TEST_CASE("mul takes whole numbers of any width, as far as i32 holds them") {
  const Value x = array({1.5, 2});
  const Array doubled = array({3, 4});
  CHECK((x * std::int64_t{2}).array() == doubled);
  CHECK((x * std::size_t{2}).array() == doubled);
  CHECK((2u * x).array() == doubled);
  CHECK_THROWS_WITH_AS(x * (std::int64_t{1} << 40),
                       doctest::Contains("got 1099511627776"), UserError);
  CHECK_THROWS_WITH_AS(x * ~std::size_t{0}, doctest::Contains("must fit i32"), UserError);
}

TEST_CASE("mul refuses booleans") {
  const Array b = ones({2}, DType::boolean);
  CHECK_THROWS_WITH_AS(mul(b, b), doctest::Contains("mul: needs numbers, got bool[2]"),
                       UserError);
}

TEST_CASE("mul refuses shapes that do not broadcast") {
  CHECK_THROWS_WITH_AS(mul(zeros({2}), zeros({3})),
                       doctest::Contains("mul: shapes [2] and [3] do not broadcast"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
