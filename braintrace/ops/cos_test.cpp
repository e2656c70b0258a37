// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("cos") {
  check_op({.op = "cos",
            .build = [](const Values& in) -> Values { return {cos(in[0])}; },
            .inputs = {uniform({3, 4}, -3, 3)},
            .expect = {
                {{array({1}, DType::f64)}, {array({0.5403023058681398}, DType::f64)}}}});
}

TEST_CASE("cos takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(cos(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(cos(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(cos(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

}  // namespace
}  // namespace braintrace
