// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::kInf;
using testing::kNan;

TEST_CASE("sign") {
  check_op(
      {.op = "sign",
       .build = [](const Values& in) -> Values { return {sign(in[0])}; },
       .inputs = {testing::distinct({3, 4})},
       .expect = {{{array({2, -3, 0}, DType::f64)}, {array({1, -1, 0}, DType::f64)}}},
       .differentiable = false});
}

TEST_CASE("sign of integers") {
  CHECK(sign(Array::from<std::int32_t>({3}, {3, -3, 0})).array() ==
        Array::from<std::int32_t>({3}, {1, -1, 0}));
}

TEST_CASE("sign keeps NaN") {
  const Array x = array({kNan, -kInf, kInf}, DType::f64);
  CHECK(sign(x).array() == array({kNan, -1, 1}, DType::f64));
}

TEST_CASE("sign refuses booleans") {
  const Array b = ones({2}, DType::boolean);
  CHECK_THROWS_WITH_AS(sign(b), doctest::Contains("sign: needs numbers, got bool[2]"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
