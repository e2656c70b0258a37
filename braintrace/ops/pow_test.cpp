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

TEST_CASE("pow") {
  check_op({.op = "pow",
            .build = [](const Values& in) -> Values { return {pow(in[0], in[1])}; },
            .inputs = {uniform({3, 4}, 0.3, 2), uniform({3, 4}, -2, 2, 2)},
            .expect = {{{array({2, 9, -2}, DType::f64), array({10, 0.5, 3}, DType::f64)},
                        {array({1024, 3, -8}, DType::f64)}}}});
}

TEST_CASE("pow with a whole exponent takes negative bases") {
  check_op({.op = "pow",
            .build = [](const Values& in) -> Values { return {pow(in[0], 3)}; },
            .inputs = {uniform({3, 4}, -2, 2)}});
}

TEST_CASE("pow has finite slopes at base zero") {
  const auto f = [](const Values& v) { return pow(v[0], v[1]); };
  CHECK(slopes(f, {0, 2}) == std::vector<double>{0, 0});
  CHECK(slopes(f, {0, 1}) == std::vector<double>{1, 0});
  CHECK(slopes(f, {0, 0}) == std::vector<double>{0, 0});
}

TEST_CASE("pow of integers is a float") {
  const Value y = pow(array({2}, DType::i32), array({-1}, DType::i32));
  CHECK(y.array() == array({0.5}));
}

}  // namespace
}  // namespace braintrace
