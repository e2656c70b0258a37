// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::kInf;
using testing::kNan;
using testing::uniform;

TEST_CASE("sigmoid") {
  check_op({.op = "sigmoid",
            .build = [](const Values& in) -> Values { return {sigmoid(in[0])}; },
            .inputs = {uniform({3, 4}, -3, 3)},
            .expect = {
                {{array({1}, DType::f64)}, {array({0.7310585786300049}, DType::f64)}}}});
}

TEST_CASE("sigmoid takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(sigmoid(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(sigmoid(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(sigmoid(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("sigmoid saturates without overflow") {
  const Array x = array({-kInf, -1000, 0, 1000, kNan}, DType::f64);
  CHECK(sigmoid(x).array() == array({0, 0, 0.5, 1, kNan}, DType::f64));
}

TEST_CASE("sigmoid keeps its relative precision far below zero") {
  CHECK(sigmoid(scalar(-50, DType::f64)).array().item() ==
        doctest::Approx(std::exp(-50.0)).epsilon(tol::f64));
}

}  // namespace
}  // namespace braintrace
