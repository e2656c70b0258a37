// SPDX-License-Identifier: Apache-2.0
#include "braintrace/transforms/vjp.h"

#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/print.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/derivatives.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/jvp.h"
#include "braintrace/transforms/linearize.h"
#include "braintrace/transforms/transpose.h"

namespace braintrace::vjp_test {
namespace {

using testing::check_close;
using testing::check_derivatives;
using testing::traced;
using testing::uniform;

// A small recurrent cell with a shared value and an output that reads it twice.
Values cell(const Values& in) {
  const Value h = tanh(dot(in[0], in[1]) + in[2]);
  return {h, sum(h * h + exp(-h))};
}

const std::vector<Array> kCell = {uniform({3, 4}, -1, 1), uniform({4, 2}, -1, 1, 2),
                                  uniform({2}, -1, 1, 3)};

TEST_CASE("derivatives of a cell agree with differences, forward and reverse") {
  check_derivatives(traced(cell, kCell), kCell);
}

TEST_CASE("an absent tangent stays absent") {
  const std::vector<Array> in = {uniform({2}, -1, 1), uniform({2}, -1, 1, 2)};
  const Graph g = traced(
      [](const Values& v) {
        return Values{tanh(v[0]), exp(v[1])};
      },
      in);
  const Values values(in.begin(), in.end());
  const std::vector<Tangent> d = {Value(in[0]), std::nullopt};
  const JvpResult r = jvp_values(g, values, d);
  CHECK(r.tangents[0].has_value());
  CHECK_FALSE(r.tangents[1].has_value());
}

TEST_CASE("jvp as a program gives zeros for a tangent that is absent") {
  const std::vector<Array> in = {uniform({2}, -1, 1), uniform({2}, -1, 1, 2)};
  const Graph g = traced(
      [](const Values& v) {
        return Values{tanh(v[0]), exp(v[1])};
      },
      in);
  const auto out =
      eval_graph(jvp(g, {true, false}), std::vector<Array>{in[0], in[1], in[0]});
  CHECK(out[3] == zeros({2}, DType::f64));
}

TEST_CASE("no derivative passes stop_gradient") {
  const std::vector<Array> in = {uniform({2}, -1, 1)};
  const Graph g =
      traced([](const Values& v) { return Values{sum(stop_gradient(v[0]) * v[0])}; }, in);
  check_close("only the second factor moves", eval_graph(grad(g), in)[0], in[0],
              tol::f64);
}

TEST_CASE("linearize keeps only what the linear part reads") {
  const std::vector<Array> in = {uniform({2}, -1, 1)};
  const Graph g = traced([](const Values& v) { return Values{exp(v[0] + 1)}; }, in);
  const Linearized lin = linearize(g, {true});
  CHECK(lin.num_residuals == 1);
  CHECK(print(lin.linear) == "in %0:f64[2] %1:f64[2]\n%2:f64[2] = mul %0 %1\nout %2\n");
}

TEST_CASE("linear part turned around equals vjp") {
  const Graph g = traced(cell, kCell);
  const Linearized lin = linearize(g, {true, true, true});
  std::vector<bool> marks(lin.linear.inputs().size(), true);
  std::fill_n(marks.begin(), lin.num_residuals, false);
  const Graph turned = transpose_linear(lin.linear, marks);
  const std::vector<Array> ct = {uniform({3, 2}, -1, 1, 7), scalar(0.5, DType::f64)};
  std::vector<Array> residuals = eval_graph(lin.primal, kCell);
  residuals.erase(residuals.begin(), residuals.begin() + 2);
  residuals.insert(residuals.end(), ct.begin(), ct.end());
  const auto got = eval_graph(turned, residuals);
  std::vector<Array> in = kCell;
  in.insert(in.end(), ct.begin(), ct.end());
  const auto want = eval_graph(vjp(g), in);
  for (std::size_t i = 0; i < got.size(); ++i)
    check_close("cotangent", got[i], want[i + 2], tol::f64);
}

TEST_CASE("grad of grad of tanh is the second derivative") {
  const std::vector<Array> x = {scalar(0.4, DType::f64)};
  const Graph g = traced([](const Values& v) { return Values{tanh(v[0])}; }, x);
  const double y = std::tanh(0.4);
  check_close("f''", eval_graph(grad(grad(g)), x)[0],
              scalar(-2 * y * (1 - y * y), DType::f64), tol::f64);
  check_close("f'''", eval_graph(grad(grad(grad(g))), x)[0],
              scalar((1 - y * y) * (6 * y * y - 2), DType::f64), tol::f64);
}

TEST_CASE("jvp of vjp agrees with differences of vjp") {
  const Graph back = vjp(traced(cell, kCell));
  std::vector<Array> in = kCell;
  in.push_back(uniform({3, 2}, -1, 1, 7));
  in.push_back(scalar(0.5, DType::f64));
  check_derivatives(back, in);
}

TEST_CASE("an unused input has a zero gradient") {
  const std::vector<Array> in = {uniform({2}, -1, 1), uniform({3}, -1, 1, 2)};
  const Graph g = traced([](const Values& v) { return Values{sum(v[0])}; }, in);
  CHECK(eval_graph(grad(g), in)[1] == zeros({3}, DType::f64));
}

TEST_CASE("an output that is an input passes its cotangent") {
  const std::vector<Array> in = {uniform({2}, -1, 1)};
  const Graph g = traced([](const Values& v) { return Values{v[0], v[0]}; }, in);
  const auto out = eval_graph(vjp(g), std::vector<Array>{in[0], array({1, 2}, DType::f64),
                                                         array({10, 20}, DType::f64)});
  CHECK(out[2] == array({11, 22}, DType::f64));
}

TEST_CASE("integer inputs have no tangent") {
  const std::vector<Array> in = {array({1, 2}, DType::i32), uniform({2}, -1, 1)};
  const Graph g = traced([](const Values& v) { return Values{sum(v[0] * v[1])}; }, in);
  CHECK(jvp(g).inputs().size() == 3);
  CHECK_THROWS_WITH_AS(jvp(g, {true, false}), doctest::Contains("has no tangent"),
                       UserError);
  CHECK_THROWS_WITH_AS(vjp(g, {true, false}), doctest::Contains("i32[2]"), UserError);
}

TEST_CASE("grad refuses an output that is not a scalar") {
  const std::vector<Array> in = {uniform({2}, -1, 1)};
  const Graph g = traced([](const Values& v) { return Values{tanh(v[0])}; }, in);
  CHECK_THROWS_WITH_AS(grad(g), doctest::Contains("float scalar, got f64[2]"), UserError);
}

std::vector<Type> infer_same(std::span<const Type> in, const Attrs&) { return {in[0]}; }
const OpDef opaque_op = {.name = "opaque", .infer = infer_same};

TEST_CASE("an op without a derivative is refused by name") {
  const auto builder = Builder::create();
  const std::vector<Value> x = {builder->input({DType::f64, {2}})};
  const Graph g = builder->finish(builder->record(opaque_op, x, {}));
  try {
    jvp(g);
    FAIL("no error");
  } catch (const UserError& e) {
    CHECK(e.kind() == ErrorKind::not_implemented);
    CHECK(std::string(e.what()).find("opaque") != std::string::npos);
  }
}

}  // namespace
}  // namespace braintrace::vjp_test
