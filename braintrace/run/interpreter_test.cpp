// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/interpreter.h"

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"

namespace interpreter_test {

using namespace braintrace;

TEST_CASE("interpret runs every node in order and shows each") {
  const Graph g = parse("in %0:f64[2] %1 = add %0 %0 %2 = add %1 %0 out %2 %1");
  std::size_t seen = 0;
  const Array x = array({1, 2}, DType::f64);
  const auto out =
      interpret(g, std::vector{x}, {.observe = [&](const Node&, auto) { ++seen; }});
  CHECK(seen == 2);
  CHECK(out[0] == array({3, 6}, DType::f64));
  CHECK(out[1] == array({2, 4}, DType::f64));
}

TEST_CASE("interpret refuses inputs of another number or type") {
  const Graph g = parse("in %0:f64[2] out %0");
  CHECK_THROWS_WITH_AS(interpret(g, {}), "eval_graph: the program has 1 inputs, got 0",
                       UserError);
  CHECK_THROWS_WITH_AS(interpret(g, std::vector{ones({2})}),
                       "eval_graph: input 0 must be f64[2], got f32[2]", UserError);
}

TEST_CASE("check_finite names the op that makes the first infinity") {
  const Graph g = parse("in %0:f64[1] %1 = log %0 %2 = add %1 %1 out %2");
  const std::vector x = {zeros({1}, DType::f64)};
  CHECK_NOTHROW(interpret(g, x));
  CHECK_THROWS_WITH_AS(interpret(g, x, {.check_finite = true}),
                       "interpret: log gives -inf at element 0", UserError);
}

}  // namespace interpreter_test
