// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/evaluate.h"

#include <doctest/doctest.h>

#include "braintrace/ops/op_list.h"
#include "braintrace/ops/registry.h"

namespace evaluate_test {

using namespace braintrace;

TEST_CASE("a program is evaluated node by node") {
  const Graph g = parse(R"(in %0:f32[2] %1:f32[2]
    %2 = add %0 %1
    %3 = add %2 %0
    out %3 %0 %2 %3)");
  const auto out = eval_graph(g, {{array({1, 2}), array({10, 20})}});
  REQUIRE(out.size() == 4);
  CHECK(out[0] == array({12, 24}));
  CHECK(out[1] == array({1, 2}));
  CHECK(out[2] == array({11, 22}));
  CHECK(out[3] == out[0]);
}

TEST_CASE("inputs that are views are read by their own order") {
  const Graph g = parse("in %0:f32[2,2] %1 = add %0 %0 out %1");
  const Array t = array({2, 2}, {1, 2, 3, 4}).transposed({1, 0});
  CHECK(eval_graph(g, {{t}})[0] == array({2, 2}, {2, 6, 4, 8}));
  CHECK(eval_op(add_op, {{t, t}}, {})[0] == array({2, 2}, {2, 6, 4, 8}));
}

TEST_CASE("the caller's arrays are never written to") {
  const Array x = array({1, 2});
  eval_graph(parse("in %0:f32[2] %1 = tanh %0 %2 = tanh %1 out %2"), {{x}});
  CHECK(x == array({1, 2}));
}

TEST_CASE("inputs must be as many and of the types the program declares") {
  const Graph g = parse("in %0:f32[2] out %0");
  CHECK_THROWS_WITH_AS(eval_graph(g, {}), "eval_graph: the program has 1 inputs, got 0",
                       UserError);
  CHECK_THROWS_WITH_AS(eval_graph(g, {{array({1, 2}, DType::f64)}}),
                       "eval_graph: input 0 must be f32[2], got f64[2]", UserError);
  CHECK_THROWS_WITH_AS(eval_graph(g, {{array({1, 2, 3})}}),
                       "eval_graph: input 0 must be f32[2], got f32[3]", UserError);
}

TEST_CASE("eval_op refuses what the op refuses") {
  CHECK_THROWS_WITH_AS(eval_op(add_op, {{array({1}), array({1, 2})}}, {}),
                       "add: operands must have one type, got f32[1], f32[2]", UserError);
}

}  // namespace evaluate_test
