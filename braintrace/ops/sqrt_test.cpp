// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::kInf;
using testing::kNan;
using testing::uniform;

TEST_CASE("sqrt") {
  check_op({.op = "sqrt",
            .build = [](const Values& in) -> Values { return {sqrt(in[0])}; },
            .inputs = {uniform({3, 4}, 0.2, 3)},
            .expect = {
                {{array({2}, DType::f64)}, {array({1.4142135623730951}, DType::f64)}}}});
}

TEST_CASE("sqrt takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(sqrt(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(sqrt(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(sqrt(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("sqrt of a negative number is NaN") {
  const Array x = array({0, -1, kInf, 4}, DType::f64);
  CHECK(sqrt(x).array() == array({0, kNan, kInf, 2}, DType::f64));
}

}  // namespace
}  // namespace braintrace
