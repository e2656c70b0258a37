// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

Array targets(Shape shape, const std::vector<double>& values) {
  return array(std::move(shape), values, DType::i32);
}

Values scatter_axis_1(const Values& in) { return {scatter_add(in[0], in[1], in[2], 1)}; }

TEST_CASE("scatter_add") {
  check_op({.op = "scatter_add",
            .build = scatter_axis_1,
            .inputs = {uniform({2, 3, 2}, -1, 1), targets({2, 2}, {2, 0, 2, 1}),
                       uniform({2, 2, 2, 2}, -1, 1, 2)}});
  check_op(
      {.op = "scatter_add",
       .build = [](const Values& in) { return Values{scatter_add(in[0], in[1], in[2])}; },
       .inputs = {uniform({3, 2}, -1, 1), targets({2}, {1, 1}),
                  uniform({2, 2}, -1, 1, 2)},
       .expect = {{{array({1, 2, 3}, DType::f64), targets({3}, {2, 0, 2}),
                    array({10, 20, 30}, DType::f64)},
                   {array({21, 2, 43}, DType::f64)}}}});
}

TEST_CASE("scatter_add at a scalar index") {
  check_op(
      {.op = "scatter_add",
       .build = scatter_axis_1,
       .inputs = {uniform({2, 3}, -1, 1), targets({}, {2}), uniform({2}, -1, 1, 2)}});
}

TEST_CASE("scatter_add stretches updates and meets in the larger type") {
  CHECK(scatter_add(zeros({3}), targets({2}, {0, 0}), 1.5).array() == array({3, 0, 0}));
  CHECK(scatter_add(zeros({2}), targets({1}, {1}), array({0.5}, DType::f64)).array() ==
        array({0, 0.5}, DType::f64));
  CHECK(scatter_add(zeros({2}, DType::i32), targets({1}, {1}), 3).array() ==
        array({0, 3}, DType::i32));
}

TEST_CASE("scatter_add without updates gives x") {
  CHECK(scatter_add(array({1, 2}), targets({0}, {}), zeros({0})).array() ==
        array({1, 2}));
}

TEST_CASE("scatter_add refuses indices outside the axis and updates that do not fit") {
  CHECK_THROWS_WITH_AS(scatter_add(zeros({3}), targets({1}, {3}), 1),
                       doctest::Contains("scatter_add: index 3 is outside [0, 3)"),
                       UserError);
  CHECK_THROWS_AS(scatter_add(zeros({3}), targets({2}, {0, 1}), zeros({3})), UserError);
  CHECK_THROWS_WITH_AS(scatter_add(zeros({3}), zeros({1}), 1),
                       doctest::Contains("scatter_add: indices must be i32, got f32[1]"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
