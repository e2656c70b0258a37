// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/print.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

// An op without inputs runs while it is traced, so a program holds it only as text.
TEST_CASE("iota") {
  const auto builder = Builder::create();
  const Value y =
      builder->record(iota_op, {}, {{"dtype", DType::f64}, {"n", std::int64_t{3}}})[0];
  const Graph g = builder->finish(std::vector{y});
  verify(g);
  CHECK(parse(print(g)) == g);
  CHECK(eval_graph(g, {})[0] == array({0, 1, 2}, DType::f64));
  CHECK(iota(4).array() == array({0, 1, 2, 3}, DType::i32));
  CHECK(iota(2, DType::f32).array() == array({0, 1}));
  CHECK(iota(0).shape() == Shape{0});
}

TEST_CASE("iota goes through the harness") {
  // Recorded by hand, for the reason above.
  const auto build = [](const Values& in) -> Values {
    const Attrs attrs = {{"dtype", DType::f64}, {"n", std::int64_t{3}}};
    const Value n = in[0].is_concrete() ? iota(3, DType::f64)
                                        : in[0].builder()->record(iota_op, {}, attrs)[0];
    return {in[0] * n};
  };
  testing::check_op(
      {.op = "iota",
       .build = build,
       .inputs = {testing::uniform({2, 3}, -1, 1)},
       .expect = {{{array({2, 2, 2}, DType::f64)}, {array({0, 2, 4}, DType::f64)}}}});
}

TEST_CASE("iota refuses negative lengths and booleans") {
  CHECK_THROWS_WITH_AS(
      iota(-1), doctest::Contains("iota: n must be in [0, 2^31], got -1"), UserError);
  CHECK_THROWS_WITH_AS(iota(2, DType::boolean),
                       doctest::Contains("iota: dtype must be i32, f32 or f64, got bool"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
