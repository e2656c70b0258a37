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

TEST_CASE("log") {
  check_op({.op = "log",
            .build = [](const Values& in) -> Values { return {log(in[0])}; },
            .inputs = {uniform({3, 4}, 0.2, 3)},
            .expect = {
                {{array({2}, DType::f64)}, {array({0.6931471805599453}, DType::f64)}}}});
}

TEST_CASE("log takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(log(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(log(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(log(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("log of zero is -inf, of a negative number NaN") {
  const Array x = array({0, -1, kInf, 1}, DType::f64);
  CHECK(log(x).array() == array({-kInf, kNan, kInf, 0}, DType::f64));
}

}  // namespace
}  // namespace braintrace
