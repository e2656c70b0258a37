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

TEST_CASE("exp") {
  check_op(
      {.op = "exp",
       .build = [](const Values& in) -> Values { return {exp(in[0])}; },
       .inputs = {uniform({3, 4}, -2, 2)},
       .expect = {{{array({1}, DType::f64)}, {array({2.718281828459045}, DType::f64)}}}});
}

TEST_CASE("exp takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(exp(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(exp(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(exp(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("exp saturates at the ends and keeps NaN") {
  const Array x = array({-kInf, 0, 1000, kNan}, DType::f64);
  CHECK(exp(x).array() == array({0, 1, kInf, kNan}, DType::f64));
}

}  // namespace
}  // namespace braintrace
