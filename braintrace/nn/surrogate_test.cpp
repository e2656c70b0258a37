// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/surrogate.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/ops.h"
#include "braintrace/run/interpreter.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/recorded_json.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/transforms/jvp.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace::nn::surrogate_test {
namespace {

using testing::row;

const nlohmann::json& golden() {
  static const nlohmann::json all =
      testing::read_json(BT_TESTS_DIR "/data/ops_nn_golden.json");
  return all.at("surrogates");
}

Graph spike_program(const Surrogate& s, const Type& type) {
  auto b = Builder::create();
  const Value x = b->input(type);
  const Value y = s(x);
  return b->finish({{y}});
}

void check_against_golden(const std::string& name, DType dtype, double tolerance) {
  CAPTURE(name);
  const nlohmann::json& c = golden().at("cases").at(name);
  const Array x = row(golden().at("x"), dtype);
  const Graph g = spike_program(Surrogate(name), type_of(x));
  const Array one = ones(x.shape(), dtype);
  const std::vector<Array> in = {x, one};
  const std::vector<Array> forward = interpret(jvp(g), in);
  const std::vector<Array> reverse = interpret(vjp(g), in);
  testing::check_close(name + " spike", forward[0], row(c.at("y"), dtype), 0);
  testing::check_close(name + " forward mode", forward[1], row(c.at("dydx"), dtype),
                       tolerance);
  testing::check_close(name + " reverse mode", reverse[1], row(c.at("dydx"), dtype),
                       tolerance);
}

}  // namespace

TEST_CASE("every surrogate of the reference has its recorded derivative in f64") {
  for (const auto& [name, unused] : golden().at("cases").items())
    check_against_golden(name, DType::f64, tol::f64);
}

TEST_CASE("every surrogate of the reference has its recorded derivative in f32") {
  for (const auto& [name, unused] : golden().at("cases").items())
    check_against_golden(name, DType::f32, tol::f32);
}

TEST_CASE("surrogates beyond the reference at hand-checked points") {
  const Array x = array({-0.5, 0.25}, DType::f64);
  const auto d = [&](const Surrogate& s) { return s.derivative(x).array(); };
  const auto want = [](double a, double b) { return array({a, b}, DType::f64); };
  const auto check = [](const Array& got, const Array& expected) {
    testing::check_close("derivative", got, expected, tol::f64);
  };
  check(d(Surrogate("FastSigmoid", {{"slope", 2}})), want(0.25, 1 / 2.25));
  check(d(Surrogate("SuperSpike", {{"beta", 4}})), want(1.0 / 9, 0.25));
  check(d(Surrogate("Triangular")), want(0.5, 0.75));
  check(d(Surrogate("Triangular", {{"width", 0.5}})), want(0, 1));
  check(d(Surrogate("Boxcar", {{"width", 0.5}})), want(0, 2));
  check(d(Surrogate("StraightThrough")), want(1, 1));
  check(d(Surrogate("ATan")), d(Surrogate("Arctan", {{"alpha", 2}})));
}

TEST_CASE("the second derivative of a spike is zero") {
  const Surrogate s("Sigmoid");
  const Array x = array({-0.3, 0.2}, DType::f64);
  const Graph first = jvp(spike_program(s, type_of(x)));
  const Graph second = jvp(first, {true, false});
  const Array one = ones({2}, DType::f64);
  const std::vector<Array> out = interpret(second, std::vector<Array>{x, one, one});
  CHECK(out[1].at(0) > 0);
  CHECK(out[3] == zeros({2}, DType::f64));
}

TEST_CASE("a surrogate refuses unknown names, parameters and values") {
  CHECK_THROWS_WITH_AS(Surrogate("Relu"),
                       doctest::Contains("no spike function is called 'Relu'; known: "
                                         "ReluGrad, Sigmoid"),
                       UserError);
  CHECK_THROWS_WITH_AS(Surrogate("ReluGrad", {{"beta", 1}}),
                       "Surrogate: ReluGrad has no parameter 'beta'; known: alpha, width",
                       UserError);
  CHECK_THROWS_WITH_AS(Surrogate("Sigmoid", {{"alpha", 0}}),
                       "Surrogate: Sigmoid's alpha must be positive and finite, got 0",
                       UserError);
  CHECK_THROWS_AS(Surrogate("SquarewaveFourierSeries", {{"n", 1.5}}), UserError);
  CHECK_THROWS_WITH_AS(Surrogate()(array({1}, DType::i32)),
                       "Surrogate: ReluGrad needs a float argument, got i32[1]",
                       UserError);
}

TEST_CASE("a surrogate prints its parameters") {
  CHECK(Surrogate("ReluGrad", {{"width", 2}}).to_string() ==
        "ReluGrad(alpha=0.3, width=2)");
}

TEST_CASE("a NaN potential gives no spike") {
  const Array nan = full({1}, std::nan(""), DType::f64);
  CHECK(Surrogate()(nan).array() == zeros({1}, DType::f64));
}

}  // namespace braintrace::nn::surrogate_test
