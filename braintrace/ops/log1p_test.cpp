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

TEST_CASE("log1p") {
  check_op({.op = "log1p",
            .build = [](const Values& in) -> Values { return {log1p(in[0])}; },
            .inputs = {uniform({3, 4}, -0.5, 3)},
            .expect = {
                {{array({1}, DType::f64)}, {array({0.6931471805599453}, DType::f64)}}}});
}

TEST_CASE("log1p takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(log1p(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(log1p(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(log1p(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("log1p is exact near zero") {
  const Array x = array({1e-20, -1, -2}, DType::f64);
  CHECK(log1p(x).array() == array({1e-20, -kInf, kNan}, DType::f64));
}

}  // namespace
}  // namespace braintrace
