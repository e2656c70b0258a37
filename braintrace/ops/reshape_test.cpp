// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

std::vector<AxisFlow> flow(const Shape& from, const Shape& to) {
  const Attrs attrs = {{"shape", to}};
  const std::vector<Type> in = {{DType::f32, from}}, out = {{DType::f32, to}};
  return reshape_op.positions({in, out, attrs}).flow[0][0].axes;
}

constexpr AxisFlow fresh = {Flow::fresh, -1};
AxisFlow same(std::int64_t axis) { return {Flow::same, axis}; }
AxisFlow mixed(std::int64_t axis) { return {Flow::mixed, axis}; }

TEST_CASE("reshape") {
  check_op({.op = "reshape",
            .build =
                [](const Values& in) {
                  return Values{reshape(in[0], {6, 4})};
                },
            .inputs = {uniform({2, 3, 4}, -1, 1)}});
  check_op({.op = "reshape",
            .build =
                [](const Values& in) {
                  return Values{reshape(in[0], {-1, 2})};
                },
            .inputs = {array({1, 4}, {1, 2, 3, 4}, DType::f64)},
            .expect = {{{array({1, 4}, {1, 2, 3, 4}, DType::f64)},
                        {array({2, 2}, {1, 2, 3, 4}, DType::f64)}}}});
}

TEST_CASE("reshape keeps the positions of axes that only gain or lose ones") {
  CHECK(flow({2, 3}, {2, 1, 3}) == std::vector{same(0), fresh, same(1)});
  CHECK(flow({2, 1, 3}, {2, 3}) == std::vector{same(0), same(2)});
  CHECK(flow({1, 3}, {1, 1, 3}) == std::vector{same(0), fresh, same(1)});
  CHECK(flow({3}, {3, 1}) == std::vector{same(0), fresh});
}

TEST_CASE("reshape mixes the positions of merged and split axes only") {
  CHECK(flow({2, 3, 5}, {6, 5}) == std::vector{mixed(0), same(2)});
  CHECK(flow({6, 5}, {2, 3, 5}) == std::vector{mixed(0), mixed(0), same(1)});
  CHECK(flow({4, 2, 3}, {4, 3, 2}) == std::vector{same(0), mixed(1), mixed(2)});
}

TEST_CASE("reshape moves empty arrays and scalars") {
  CHECK(reshape(zeros({0, 3}), {3, 0, 2}).shape() == Shape{3, 0, 2});
  CHECK(reshape(scalar(2), {1, 1}).array() == array({1, 1}, {2}));
}

TEST_CASE("reshape names the element counts it cannot match") {
  CHECK_THROWS_WITH_AS(reshape(zeros({2, 3}), {4}),
                       doctest::Contains("reshape: [2,3] has 6 elements, [4] has 4"),
                       UserError);
  CHECK_THROWS_WITH_AS(reshape(zeros({2, 3}), {4, -1}),
                       doctest::Contains("reshape: [2,3] cannot fill [4,-1]"), UserError);
  CHECK_THROWS_AS(reshape(zeros({2, 3}), {-1, -1}), UserError);
  CHECK_THROWS_AS(reshape(zeros({0}), {0, -1}), UserError);
}

TEST_CASE("expand_dims and squeeze add and drop axes of size 1") {
  CHECK(expand_dims(zeros({2, 3}), -1).shape() == Shape{2, 3, 1});
  CHECK(expand_dims(zeros({2, 3}), 0).shape() == Shape{1, 2, 3});
  CHECK(squeeze(zeros({2, 1, 3}), -2).shape() == Shape{2, 3});
  CHECK_THROWS_WITH_AS(
      squeeze(zeros({2, 3}), 0),
      doctest::Contains("squeeze: axis 0 must have size 1, got shape [2,3]"), UserError);
  CHECK_THROWS_WITH_AS(
      expand_dims(zeros({2}), 3),
      doctest::Contains("expand_dims: axis 3 is out of range for rank 2"), UserError);
}

}  // namespace
}  // namespace braintrace
