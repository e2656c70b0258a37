// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/narrow_uniform.h"

#include <doctest/doctest.h>

#include "braintrace/ir/op_def.h"
#include "braintrace/ir/print.h"
#include "braintrace/ops/registry.h"
#include "braintrace/passes/dce.h"
#include "braintrace/testing/pass_check.h"

namespace narrow_uniform_test {

using namespace braintrace;

TEST_CASE("large values that repeat along an axis are computed once along it") {
  const Graph g = parse(R"(in %0:f64[8,100] %1:f64[8,64]
      %2:f64[8,100,1] = reshape {shape=[8,100,1]} %0
      %3:f64[8,100,64] = broadcast {shape=[8,100,64]} %2
      %4:f64[] = constant {value=f64[](0.5)}
      %5:f64[8,100,64] = broadcast {shape=[8,100,64]} %4
      %6 = mul %5 %3
      %7 = exp %6
      %8:f64[8,1,64] = reshape {shape=[8,1,64]} %1
      %9:f64[8,100,64] = broadcast {shape=[8,100,64]} %8
      %10 = add %7 %9
      out %10)");
  const Graph after = dce(narrow_uniform(g));
  testing::check_same_values(g, after);
  for (const Node& n : after.nodes())
    if (n.op->name == "mul" || n.op->name == "exp")
      CHECK(after.type(n.outputs[0]).shape == Shape{8, 100, 1});
}

TEST_CASE("small values stay as they are") {
  const Graph g = parse(R"(in %0:f64[8,1]
      %1:f64[8,6] = broadcast {shape=[8,6]} %0
      %2 = exp %1
      out %2)");
  CHECK(print(dce(narrow_uniform(g))) == print(g));
}

TEST_CASE("values without entries stay as they are") {
  const Graph g = parse(R"(in %0:f64[3,1] %1:f64[0]
      %2:f64[3,0] = broadcast {shape=[3,0]} %0
      %3:f64[3,0] = broadcast {shape=[3,0]} %1
      %4 = add %2 %3
      out %4)");
  CHECK(print(dce(narrow_uniform(g))) == print(g));
}

TEST_CASE("what a value repeats along follows it through views and arithmetic") {
  const Graph g = parse(R"(in %0:f64[4,5] %1:f64[4,5] %2:f64[5,4]
      %3:f64[4,5] = constant {value=f64[4,5](splat 3)}
      %4 = mul %0 %3
      %5 = add %4 %1
      %6:f64[5,4] = transpose {permutation=[1,0]} %4
      %7 = mul %6 %2
      %8:f64[4,5,1] = reshape {shape=[4,5,1]} %4
      %9:f64[4,2] = slice {size=[4,2], start=[0,1], step=[1,2]} %4
      %10:f64[4,7] = concatenate {axis=1} %4 %9
      %11:f64[20] = reshape {shape=[20]} %4
      out %3 %4 %5 %6 %7 %8 %9 %10 %11)");
  using Shapes = std::vector<Shape>;
  CHECK(uniform_shapes(g, Shapes{{4, 1}, {1, 5}, {5, 4}}, g.outputs()) ==
        Shapes{{1, 1}, {4, 1}, {4, 5}, {1, 4}, {5, 4}, {4, 1, 1}, {4, 1}, {4, 7}, {20}});
}

}  // namespace narrow_uniform_test
