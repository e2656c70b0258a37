// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;

TEST_CASE("logical_not") {
  check_op(
      {.op = "logical_not",
       .build = [](const Values& in) -> Values { return {logical_not(in[0])}; },
       .inputs = {array({1, 0}, DType::boolean)},
       .expect = {{{array({1, 0}, DType::boolean)}, {array({0, 1}, DType::boolean)}}},
       .differentiable = false});
}

TEST_CASE("logical_not takes numbers as true unless they are 0") {
  CHECK(logical_not(array({0, 0.5, -1})).array() == array({1, 0, 0}, DType::boolean));
}

}  // namespace
}  // namespace braintrace
