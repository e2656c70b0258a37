// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

constexpr std::int64_t kFarAway = std::numeric_limits<std::int64_t>::max();

TEST_CASE("slice") {
  check_op({.op = "slice",
            .build =
                [](const Values& in) {
                  return Values{slice(in[0], {1, 0}, {2, 3})};
                },
            .inputs = {uniform({4, 3}, -1, 1)}});
  check_op({.op = "slice",
            .build =
                [](const Values& in) {
                  return Values{slice(in[0], {1, 1}, {2, 2}, {3, 2})};
                },
            .inputs = {uniform({6, 4}, -1, 1)}});
  check_op(
      {.op = "slice",
       .build = [](const Values& in) { return Values{slice(in[0], {1}, {2}, {2})}; },
       .inputs = {uniform({5}, -1, 1)},
       .expect = {{{array({1, 2, 3, 4, 5}, DType::f64)}, {array({2, 4}, DType::f64)}}}});
}

TEST_CASE("an empty slice and its gradient exist") {
  check_op({.op = "slice",
            .build = [](const Values& in) { return Values{slice(in[0], {2}, {0}, {3})}; },
            .inputs = {uniform({4}, -1, 1)}});
}

TEST_CASE("slice_axis cuts one axis") {
  CHECK(slice_axis(array({2, 3}, {1, 2, 3, 4, 5, 6}), -1, 1, 2).array() ==
        array({2, 2}, {2, 3, 5, 6}));
  CHECK_THROWS_WITH_AS(slice_axis(zeros({3}), 1, 0, 1),
                       doctest::Contains("slice_axis: axis 1 is out of range for rank 1"),
                       UserError);
}

TEST_CASE("slice refuses windows outside the array") {
  CHECK_THROWS_WITH_AS(
      slice(zeros({3}), {2}, {2}),
      doctest::Contains("slice: axis 0 of [3] does not hold start 2, size 2, step 1"),
      UserError);
  CHECK_THROWS_AS(slice(zeros({3}), {-1}, {1}), UserError);
  CHECK_THROWS_AS(slice(zeros({3}), {0}, {-1}), UserError);
  CHECK_THROWS_AS(slice(zeros({3}), {0}, {2}, {0}), UserError);
  CHECK_THROWS_AS(slice(zeros({3}), {4}, {0}), UserError);
  CHECK_THROWS_AS(slice(zeros({3}), {1}, {kFarAway}, {kFarAway}), UserError);
  CHECK_THROWS_AS(slice(zeros({3}), {kFarAway}, {2}), UserError);
  CHECK_THROWS_WITH_AS(
      slice(zeros({3, 2}), {0}, {1}),
      doctest::Contains("slice: start, size and step need 2 entries each for [3,2], got "
                        "1, 1 and 1"),
      UserError);
}

TEST_CASE("slice with step 1 shifts positions") {
  const Attrs attrs = {{"start", Ints{2}}, {"size", Ints{3}}, {"step", Ints{1}}};
  const std::vector<Type> in = {{DType::f32, {6}}}, out = {{DType::f32, {3}}};
  const AxisFlow f = slice_op.positions({in, out, attrs}).flow[0][0].axes[0];
  CHECK(f == AxisFlow{Flow::shifted, 0, -2, 1});
}

}  // namespace
}  // namespace braintrace
