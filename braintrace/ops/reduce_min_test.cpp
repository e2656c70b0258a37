// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::distinct;
using testing::kInf;
using testing::kNan;

TEST_CASE("reduce_min") {
  check_op({.op = "reduce_min",
            .build =
                [](const Values& in) {
                  return Values{min(in[0], {.axes = {0, 2}})};
                },
            .inputs = {distinct({2, 3, 4})}});
  check_op({.op = "reduce_min",
            .build = [](const Values& in) { return Values{min(in[0], {.axes = {-2}})}; },
            .inputs = {distinct({3, 2})},
            .expect = {{{array({2, 3}, {1, 5, 3, 4, 2, 6}, DType::f64)},
                        {array({1, 2, 3}, DType::f64)}}}});
}

TEST_CASE("min of no floats is infinite, of no integers an error") {
  CHECK(min(zeros({2, 0}), {.axes = {1}}).array() == array({kInf, kInf}));
  CHECK_THROWS_WITH_AS(
      min(zeros({0}, DType::i32)),
      doctest::Contains(
          "reduce_min: integers have no extreme of no elements, got i32[0]"),
      UserError);
}

TEST_CASE("min passes NaN on and reads integers and booleans") {
  CHECK(min(array({1, kNan, 3})).array() == scalar(kNan));
  CHECK(min(array({kNan, 3})).array() == scalar(kNan));
  CHECK(min(array({4, -7, 2}, DType::i32)).array() == scalar(-7, DType::i32));
  CHECK(min(array({1, 0}, DType::boolean)).array() == scalar(0, DType::i32));
}

TEST_CASE("min keeps reduced axes on request") {
  CHECK(min(zeros({2, 3}), {.axes = {1}, .keepdims = true}).shape() == Shape{2, 1});
}

TEST_CASE("ties of min share the derivative equally") {
  const Values x = {array({5, 3, 3})}, y = {scalar(3)};
  const Attrs attrs = {{"axes", Ints{0}}};
  const Site site{reduce_min_op, x, y, attrs, {}};
  const std::vector<Tangent> dx = {Value(array({0, 1, 0}))};
  CHECK(reduce_min_op.jvp(site, dx)[0]->array() == scalar(0.5));
}

}  // namespace
}  // namespace braintrace
