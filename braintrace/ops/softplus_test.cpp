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

TEST_CASE("softplus") {
  check_op({.op = "softplus",
            .build = [](const Values& in) -> Values { return {softplus(in[0])}; },
            .inputs = {uniform({3, 4}, -3, 3)},
            .expect = {
                {{array({0}, DType::f64)}, {array({0.6931471805599453}, DType::f64)}}}});
}

TEST_CASE("softplus takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(softplus(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(softplus(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(softplus(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("softplus is x far above zero and 0 far below") {
  const Array x = array({1000, -1000, kInf, -kInf, kNan}, DType::f64);
  CHECK(softplus(x).array() == array({1000, 0, kInf, 0, kNan}, DType::f64));
}

}  // namespace
}  // namespace braintrace
