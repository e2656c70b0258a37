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

TEST_CASE("expm1") {
  check_op(
      {.op = "expm1",
       .build = [](const Values& in) -> Values { return {expm1(in[0])}; },
       .inputs = {uniform({3, 4}, -2, 2)},
       .expect = {{{array({1}, DType::f64)}, {array({1.718281828459045}, DType::f64)}}}});
}

TEST_CASE("expm1 takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(expm1(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(expm1(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(expm1(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("expm1 is exact near zero") {
  const Array x = array({1e-20, 0, -kInf, kNan}, DType::f64);
  CHECK(expm1(x).array() == array({1e-20, 0, -1, kNan}, DType::f64));
}

}  // namespace
}  // namespace braintrace
