// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/slopes.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::kInf;
using testing::kNan;
using testing::slopes;
using testing::uniform;

TEST_CASE("clamp") {
  check_op(
      {.op = "clamp",
       .build = [](const Values& in) -> Values { return {clamp(in[0], in[1], in[2])}; },
       .inputs = {uniform({4, 5}, -2, 2), uniform({4, 5}, -1, -0.5, 2),
                  uniform({4, 5}, 0.5, 1, 3)},
       .expect = {{{array({-3, 0.5, 3}, DType::f64), array({-1, -1, -1}, DType::f64),
                    array({1, 1, 1}, DType::f64)},
                   {array({-1, 0.5, 1}, DType::f64)}}}});
}

TEST_CASE("clamp keeps NaN and bounds infinity") {
  const Array x = array({kNan, -kInf, kInf}, DType::f64);
  CHECK(clamp(x, -1, 1).array() == array({kNan, -1, 1}, DType::f64));
}

TEST_CASE("a NaN bound of clamp gives NaN, as in numpy") {
  const Array x = array({0, 0, 5, -5}, DType::f64), none = full({4}, kNan, DType::f64);
  CHECK(clamp(x, none, 1).array() == none);
  CHECK(clamp(x, -1, none).array() == none);
}

TEST_CASE("clamp of integers") {
  CHECK(clamp(Array::from<std::int32_t>({3}, {-5, 0, 5}), -1, 2).array() ==
        Array::from<std::int32_t>({3}, {-1, 0, 2}));
}

TEST_CASE("clamp has slope 1 inside, 0 outside and on the bounds") {
  const auto f = [](const Values& v) { return clamp(v[0], -1, v[1]); };
  CHECK(slopes(f, {0.5, 1}) == std::vector<double>{1, 0});
  CHECK(slopes(f, {2, 1}) == std::vector<double>{0, 1});
  CHECK(slopes(f, {1, 1}) == std::vector<double>{0, 0});
  CHECK(slopes(f, {-1, 1}) == std::vector<double>{0, 0});
}

}  // namespace
}  // namespace braintrace
