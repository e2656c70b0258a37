// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/slopes.h"

#include <doctest/doctest.h>

namespace braintrace::testing::slopes_test {
namespace {

TEST_CASE("slopes are the partial derivatives in the order of the coordinates") {
  const auto f = [](const Values& v) { return v[0] * v[0] * v[1]; };
  CHECK(slopes(f, {3, 5}) == std::vector<double>{30, 9});
}

TEST_CASE("slopes of a coordinate that is not used are zero") {
  CHECK(slopes([](const Values& v) { return 2 * v[1]; }, {1, 1}) ==
        std::vector<double>{0, 2});
}

}  // namespace
}  // namespace braintrace::testing::slopes_test
