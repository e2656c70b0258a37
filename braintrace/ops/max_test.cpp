// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/slopes.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::kNan;
using testing::slopes;

TEST_CASE("max") {
  check_op(
      {.op = "max",
       .build = [](const Values& in) -> Values { return {maximum(in[0], in[1])}; },
       .inputs = {testing::distinct({3, 4}, 0.1), testing::distinct({3, 4}, 0.13, 2)},
       .expect = {{{array({1, 5}, DType::f64), array({2, -5}, DType::f64)},
                   {array({2, 5}, DType::f64)}}}});
}

TEST_CASE("max is NaN if either is") {
  const Array x = array({kNan, 1, kNan}, DType::f64);
  CHECK(maximum(x, array({1, kNan, kNan}, DType::f64)).array() ==
        array({kNan, kNan, kNan}, DType::f64));
}

TEST_CASE("max of integers") {
  CHECK(maximum(Array::from<std::int32_t>({2}, {3, -3}),
                Array::from<std::int32_t>({2}, {1, 1}))
            .array() == Array::from<std::int32_t>({2}, {3, 1}));
}

TEST_CASE("max gives each operand half the slope at a tie") {
  const auto f = [](const Values& v) { return maximum(v[0], v[1]); };
  CHECK(slopes(f, {2, 2}) == std::vector<double>{0.5, 0.5});
  CHECK(slopes(f, {2, 1}) == std::vector<double>{1, 0});
}

}  // namespace
}  // namespace braintrace
