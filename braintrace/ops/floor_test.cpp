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

TEST_CASE("floor") {
  check_op(
      {.op = "floor",
       .build = [](const Values& in) -> Values { return {floor(in[0])}; },
       .inputs = {uniform({3, 4}, -2.9, 2.9)},
       .expect = {{{array({1.5, -1.5, 2}, DType::f64)}, {array({1, -2, 2}, DType::f64)}}},
       .differentiable = false});
}

TEST_CASE("floor keeps NaN and infinity") {
  const Array x = array({kNan, -kInf}, DType::f64);
  CHECK(floor(x).array() == array({kNan, -kInf}, DType::f64));
}

TEST_CASE("floor leaves integers alone") {
  CHECK(floor(Array::from<std::int32_t>({1}, {2147483647})).array() ==
        Array::from<std::int32_t>({1}, {2147483647}));
}

}  // namespace
}  // namespace braintrace
