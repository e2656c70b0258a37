// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/slopes.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::slopes;
using testing::uniform;

TEST_CASE("stop_gradient") {
  check_op({.op = "stop_gradient",
            .build = [](const Values& in) -> Values { return {stop_gradient(in[0])}; },
            .inputs = {uniform({3, 4}, -1, 1)},
            .expect = {{{array({1, -2}, DType::f64)}, {array({1, -2}, DType::f64)}}},
            .differentiable = false});
}

TEST_CASE("stop_gradient blocks one path and leaves the others") {
  const auto f = [](const Values& v) { return v[0] * stop_gradient(v[0]); };
  CHECK(slopes(f, {3}) == std::vector<double>{3});
}

}  // namespace
}  // namespace braintrace
