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

TEST_CASE("erf") {
  check_op({.op = "erf",
            .build = [](const Values& in) -> Values { return {erf(in[0])}; },
            .inputs = {uniform({3, 4}, -2, 2)},
            .expect = {{{array({0.5}, DType::f64)},
                        {array({0.5204998778130465}, DType::f64)}}}});
}

TEST_CASE("erf takes integers to f32 and keeps empty and scalar shapes") {
  CHECK(erf(array({1}, DType::i32)).dtype() == DType::f32);
  CHECK(erf(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(erf(scalar(1, DType::f64)).type() == Type{DType::f64, {}});
}

TEST_CASE("erf saturates at one") {
  const Array x = array({-kInf, 0, kInf, kNan}, DType::f64);
  CHECK(erf(x).array() == array({-1, 0, 1, kNan}, DType::f64));
}

}  // namespace
}  // namespace braintrace
