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

TEST_CASE("rsqrt") {
  check_op({.op = "rsqrt",
            .build = [](const Values& in) -> Values { return {rsqrt(in[0])}; },
            .inputs = {uniform({3, 4}, 0.2, 3)},
            .expect = {
                {{array({2}, DType::f64)}, {array({0.7071067811865475}, DType::f64)}}}});
}

TEST_CASE("rsqrt takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(rsqrt(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(rsqrt(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(rsqrt(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("rsqrt of zero is inf") {
  const Array x = array({0, -1, kInf, 4}, DType::f64);
  CHECK(rsqrt(x).array() == array({kInf, kNan, 0, 0.5}, DType::f64));
}

}  // namespace
}  // namespace braintrace
