// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/jacobian.h"

#include <doctest/doctest.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/derivatives.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::jacobian_test {
namespace {

using testing::check_close;
using testing::traced;
using testing::uniform;

const std::vector<Array> kIn = {uniform({2, 3}, -1, 1), uniform({3, 4}, -1, 1, 2)};

Values layer(const Values& in) { return {sum(in[0]), tanh(dot(in[0], in[1]))}; }

TEST_CASE("forward and reverse Jacobians agree") {
  const Graph g = traced(layer, kIn);
  for (std::size_t input = 0; input < 2; ++input) {
    const auto in = kIn;
    const Array f = eval_graph(
        jacobian(g, {.output = 1, .input = input, .mode = JacobianMode::forward}), in)[0];
    const Array r = eval_graph(
        jacobian(g, {.output = 1, .input = input, .mode = JacobianMode::reverse}), in)[0];
    check_close("J", f, r, tol::f64);
  }
}

TEST_CASE(
    "a Jacobian has the shape of output then input and the differences as columns") {
  const Graph g = traced(layer, kIn);
  const Array j = eval_graph(jacobian(g, {.output = 1, .input = 0}), kIn)[0];
  CHECK(j.shape() == Shape{2, 4, 2, 3});
  std::vector<double> unit(6, 0.0);
  unit[4] = 1;
  const auto d = testing::central_differences(
      g, kIn, {array({2, 3}, unit, DType::f64), zeros({3, 4}, DType::f64)});
  for (std::int64_t o = 0; o < 8; ++o)
    CHECK(j.at(o * 6 + 4) == doctest::Approx(d[1].at(o)).epsilon(tol::f64_diff));
}

TEST_CASE("a Jacobian by an input that does not matter is zero") {
  const Graph g = traced(layer, kIn);
  CHECK(eval_graph(jacobian(g, {.output = 0, .input = 1}), kIn)[0] ==
        zeros({3, 4}, DType::f64));
}

TEST_CASE("jacobian refuses what is not there or not a float") {
  const Graph g = traced(layer, kIn);
  CHECK_THROWS_WITH_AS(jacobian(g, {.output = 2}), doctest::Contains("2 outputs"),
                       UserError);
  const Graph h = traced([](const Values& v) { return Values{v[0] + 1}; },
                         {array({1, 2}, DType::i32)});
  CHECK_THROWS_WITH_AS(jacobian(h), doctest::Contains("needs floats"), UserError);
}

}  // namespace
}  // namespace braintrace::jacobian_test
