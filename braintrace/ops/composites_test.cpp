// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ir/constant.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/slopes.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace {
namespace {

using testing::check_close;
using testing::check_op;
using testing::kInf;
using testing::kNan;
using testing::slopes;
using testing::uniform;

// Derivatives and batching of a composite follow from its ops; the harness checks that
// they fit together. `op` is one op it must contain.
void check(const std::string& op, const std::function<Value(const Value&)>& f,
           const Array& input) {
  check_op({.op = op,
            .build = [&](const Values& in) -> Values { return {f(in[0])}; },
            .inputs = {input}});
}

Array f64(std::initializer_list<double> values) { return array(values, DType::f64); }

TEST_CASE("relu cuts below zero, keeps NaN and has slope 0 at 0") {
  check(
      "select", [](const Value& x) { return relu(x); }, testing::distinct({3, 4}));
  CHECK(relu(f64({-1, 0, 2, kNan})).array() == f64({0, 0, 2, kNan}));
  CHECK(slopes([](const Values& v) { return relu(v[0]); }, {0})[0] == 0);
  CHECK(slopes([](const Values& v) { return relu(v[0]); }, {1})[0] == 1);
}

TEST_CASE("square multiplies a value with itself") {
  check(
      "mul", [](const Value& x) { return square(x); }, uniform({3}, -1, 1));
  CHECK(square(array({-3, 2}, DType::i32)).array() == array({9, 4}, DType::i32));
}

TEST_CASE("mean divides the sum by the number of entries") {
  check(
      "div", [](const Value& x) { return mean(x, {.axes = {-1}}); },
      uniform({3, 4}, -1, 1));
  const Array x = array({2, 2}, {1, 2, 3, 6}, DType::f64);
  CHECK(mean(x).array() == scalar(3, DType::f64));
  CHECK(mean(x, {.axes = {0}}).array() == f64({2, 4}));
  CHECK(mean(x, {.axes = {1}, .keepdims = true}).array() ==
        array({2, 1}, {1.5, 4.5}, DType::f64));
  CHECK(mean(array({1, 2}, DType::i32)).array() == scalar(1.5));
  CHECK_THROWS_WITH_AS(mean(x, {.axes = {2}}), doctest::Contains("mean"), UserError);
}

TEST_CASE("layer_norm gives mean 0 and variance 1") {
  check(
      "rsqrt", [](const Value& x) { return layer_norm(x); }, uniform({3, 4}, -1, 1));
  check_close("layer_norm", layer_norm(f64({1, 3}), {-1}, 0).array(), f64({-1, 1}),
              tol::f64);
  const Array same = layer_norm(f64({5, 5, 5})).array();
  CHECK(same == f64({0, 0, 0}));
  CHECK_THROWS_WITH_AS(layer_norm(f64({1, 2}), {-1}, -1.0),
                       doctest::Contains("layer_norm: epsilon"), UserError);
}

TEST_CASE("softmax sums to one and does not overflow") {
  check(
      "exp", [](const Value& x) { return softmax(x); }, testing::distinct({3, 4}));
  check_close("softmax", softmax(f64({0, std::log(3.0)})).array(), f64({0.25, 0.75}),
              tol::f64);
  CHECK(softmax(f64({1000, 1000, -kInf})).array() == f64({0.5, 0.5, 0}));
  CHECK(softmax(zeros({2, 4}), 0).array() == full({2, 4}, 0.5));
}

TEST_CASE("log_softmax is the logarithm of softmax, also far out") {
  check(
      "log", [](const Value& x) { return log_softmax(x); }, testing::distinct({3, 4}));
  check_close("log_softmax", log_softmax(f64({0, 1000})).array(), f64({-1000, 0}),
              tol::f64);
}

TEST_CASE("an axis that is not there is refused in the name of the function called") {
  const Array v = zeros({3});
  CHECK_THROWS_WITH_AS(softmax(v, 1),
                       doctest::Contains("softmax: axis 1 is out of range"), UserError);
  CHECK_THROWS_WITH_AS(log_softmax(v, -2),
                       doctest::Contains("log_softmax: axis -2 is out of range"),
                       UserError);
  CHECK_THROWS_WITH_AS(logsumexp(v, 1),
                       doctest::Contains("logsumexp: axis 1 is out of range"), UserError);
}

TEST_CASE("logsumexp is a smooth maximum and keeps infinities") {
  check(
      "log", [](const Value& x) { return logsumexp(x, 0); }, testing::distinct({3, 4}));
  check_close("logsumexp", logsumexp(f64({1000, 1000})).array(),
              scalar(1000 + std::log(2.0), DType::f64), tol::f64);
  CHECK(logsumexp(f64({-kInf, -kInf})).array().item() == -kInf);
  CHECK(logsumexp(f64({kInf, 0})).array().item() == kInf);
}

TEST_CASE("one_hot marks the index; an index outside gives zeros") {
  CHECK(one_hot(array({1, 0, 5}, DType::i32), 2).array() ==
        array({3, 2}, {0, 1, 1, 0, 0, 0}));
  CHECK(one_hot(array({2}, DType::i32), 3, DType::i32).dtype() == DType::i32);
  CHECK_THROWS_WITH_AS(one_hot(array({1.0}), 2),
                       doctest::Contains("one_hot: indices must be i32, got f32[1]"),
                       UserError);
  CHECK_THROWS_AS(one_hot(array({1}, DType::i32), -1), UserError);
}

TEST_CASE("zeros_like and ones_like keep type and shape, as one number under a trace") {
  CHECK(zeros_like(array({1, 2}, DType::i32)).array() == zeros({2}, DType::i32));
  CHECK(ones_like(f64({1, 2})).array() == f64({1, 1}));
  const auto builder = Builder::create();
  const Value x = builder->input({DType::f32, {50}});
  const Graph g = builder->finish(Values{ones_like(x)});
  CHECK(g.output_types()[0] == Type{DType::f32, {50}});
  for (const Node& n : g.nodes())
    if (const Array* value = literal(n)) CHECK(value->size() == 1);
}

}  // namespace
}  // namespace braintrace
