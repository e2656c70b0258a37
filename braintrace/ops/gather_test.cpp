// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace::gather_test {
namespace {

using testing::check_op;
using testing::uniform;

Array indices(Shape shape, const std::vector<double>& values) {
  return array(std::move(shape), values, DType::i32);
}

TEST_CASE("gather") {
  check_op({.op = "gather",
            .build = [](const Values& in) { return Values{take(in[0], in[1], 1)}; },
            .inputs = {uniform({2, 3, 2}, -1, 1), indices({2, 2}, {2, 0, 2, 1})}});
  check_op(
      {.op = "gather",
       .build = [](const Values& in) { return Values{take(in[0], in[1])}; },
       .inputs = {uniform({3, 2}, -1, 1), indices({2}, {1, 1})},
       .expect = {{{array({2, 2}, {1, 2, 3, 4}, DType::f64), indices({3}, {1, 0, 1})},
                   {array({3, 2}, {3, 4, 1, 2, 3, 4}, DType::f64)}}}});
}

TEST_CASE("gather by a scalar index drops the axis") {
  check_op({.op = "gather",
            .build = [](const Values& in) { return Values{take(in[0], in[1], -1)}; },
            .inputs = {uniform({2, 3}, -1, 1), indices({}, {2})}});
  CHECK(take(array({5, 6}), 1).array() == scalar(6));
}

TEST_CASE("gather takes no indices and any element type") {
  CHECK(take(zeros({3, 2}), indices({0}, {})).shape() == Shape{0, 2});
  CHECK(take(array({1, 0}, DType::boolean), indices({1}, {1})).array() ==
        array({0}, DType::boolean));
}

TEST_CASE("gather refuses an index outside the axis when it runs") {
  CHECK_THROWS_WITH_AS(take(zeros({3}), indices({2}, {0, 3})),
                       doctest::Contains("gather: index 3 is outside [0, 3)"), UserError);
  CHECK_THROWS_WITH_AS(take(zeros({3}), indices({1}, {-1})),
                       doctest::Contains("gather: index -1 is outside [0, 3)"),
                       UserError);
}

TEST_CASE("gather refuses indices that are no integers") {
  CHECK_THROWS_WITH_AS(take(zeros({3}), zeros({2})),
                       doctest::Contains("gather: indices must be i32, got f32[2]"),
                       UserError);
  CHECK_THROWS_AS(take(scalar(1), 0), UserError);
}

TEST_CASE("gather over lanes refuses an index that would reach the next lane") {
  const Values in = {zeros({2, 3}), indices({2, 1}, {3, 0})};
  const Attrs attrs = {{"axis", std::int64_t{0}}};
  const std::vector<BatchAxis> axes = {0, 0};
  CHECK_THROWS_WITH_AS(gather_op.batch({gather_op, in, {}, attrs, {}}, axes),
                       doctest::Contains("gather: index -1 is outside [0, 6)"),
                       UserError);
}

}  // namespace
}  // namespace braintrace::gather_test
