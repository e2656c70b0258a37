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

TEST_CASE("div") {
  check_op({.op = "div",
            .build = [](const Values& in) -> Values { return {div(in[0], in[1])}; },
            .inputs = {uniform({3, 4}, -1, 1), uniform({3, 4}, 0.5, 2, 2)},
            .expect = {{{array({7, 1}, DType::f64), array({2, -4}, DType::f64)},
                        {array({3.5, -0.25}, DType::f64)}}}});
}

TEST_CASE("div broadcasts") {
  check_op({.op = "div",
            .build = [](const Values& in) -> Values { return {div(in[0], in[1])}; },
            .inputs = {uniform({3, 1}, -1, 1), uniform({2}, 0.5, 2, 2)}});
}

TEST_CASE("div by zero is infinite or NaN") {
  const Array x = array({1, -1, 0}, DType::f64);
  CHECK(div(x, array({0, 0, 0}, DType::f64)).array() ==
        array({kInf, -kInf, kNan}, DType::f64));
}

TEST_CASE("integers divide as floats") {
  const Value y = array({7, 1}, DType::i32) / array({2, 4}, DType::i32);
  CHECK(y.array() == array({3.5, 0.25}));
}

}  // namespace
}  // namespace braintrace
