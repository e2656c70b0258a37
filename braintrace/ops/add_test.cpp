// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/constant.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();

TEST_CASE("add") {
  check_op({.op = "add",
            .build = [](const Values& in) -> Values { return {add(in[0], in[1])}; },
            .inputs = {uniform({3, 4}, -1, 1), uniform({3, 4}, -1, 1, 2)},
            .expect = {{{array({2, 3}, DType::f64), array({5, -1}, DType::f64)},
                        {array({7, 2}, DType::f64)}}}});
}

TEST_CASE("add broadcasts a column against a row") {
  check_op(
      {.op = "add",
       .build = [](const Values& in) -> Values { return {add(in[0], in[1])}; },
       .inputs = {uniform({3, 1}, -1, 1), uniform({2}, -1, 1, 2)},
       .expect = {{{array({3, 1}, {10, 20, 30}, DType::f64), array({1, 2}, DType::f64)},
                   {array({3, 2}, {11, 12, 21, 22, 31, 32}, DType::f64)}}}});
}

TEST_CASE("add of integers wraps around") {
  CHECK(add(Array::from<std::int32_t>({1}, {kMax}), Array::from<std::int32_t>({1}, {1}))
            .array() == Array::from<std::int32_t>({1}, {kMin}));
}

TEST_CASE("add refuses booleans") {
  const Array b = ones({2}, DType::boolean);
  CHECK_THROWS_WITH_AS(add(b, b), doctest::Contains("add: needs numbers, got bool[2]"),
                       UserError);
}

TEST_CASE("add refuses shapes that do not broadcast") {
  CHECK_THROWS_WITH_AS(add(zeros({2}), zeros({3})),
                       doctest::Contains("add: shapes [2] and [3] do not broadcast"),
                       UserError);
}

TEST_CASE("the add op refuses mixed types in a program") {
  CHECK_THROWS_WITH_AS(
      parse("in %0:f32[2] %1:f64[2]  %2:f32[2] = add %0 %1  out %2"),
      doctest::Contains("add: operands must have one type, got f32[2], f64[2]"),
      UserError);
}

TEST_CASE("a number beside a symbolic value is stored once, not per position") {
  const auto builder = Builder::create();
  const Value x = builder->input({DType::f32, {1000}});
  const Graph g = builder->finish(Values{x + 1});
  for (const Node& node : g.nodes())
    if (const Array* value = literal(node)) CHECK(value->size() == 1);
}

}  // namespace
}  // namespace braintrace
