// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

TEST_CASE("pad") {
  check_op({.op = "pad",
            .build =
                [](const Values& in) {
                  return Values{pad(in[0], {1, 0}, {0, 2}, 0, {2, 0})};
                },
            .inputs = {uniform({3, 2}, -1, 1)}});
  check_op(
      {.op = "pad",
       .build = [](const Values& in) { return Values{pad(in[0], {1}, {2}, 9, {1})}; },
       .inputs = {uniform({2}, -1, 1)},
       .expect = {
           {{array({1, 2}, DType::f64)}, {array({9, 1, 9, 2, 9, 9}, DType::f64)}}}});
}

TEST_CASE("pad of no elements is padding only") {
  CHECK(pad(zeros({0}), {1}, {1}, 3, {5}).array() == array({3, 3}));
}

TEST_CASE("pad fills floats with infinity and integers with integers only") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(pad(array({1}), {1}, {0}, -inf).array() == array({-inf, 1}));
  CHECK(pad(array({1}, DType::i32), {1}, {0}, 7).array() == array({7, 1}, DType::i32));
  CHECK(pad(array({1}, DType::boolean), {1}, {0}).array() ==
        array({0, 1}, DType::boolean));
  CHECK_THROWS_WITH_AS(pad(array({1}, DType::i32), {1}, {0}, 0.5),
                       doctest::Contains("pad: value 0.5 does not fit i32"), UserError);
  CHECK_THROWS_AS(pad(array({1}, DType::i32), {1}, {0}, inf), UserError);
}

TEST_CASE("pad refuses negative and huge amounts and wrong lengths") {
  CHECK_THROWS_WITH_AS(
      pad(zeros({2}), {-1}, {0}),
      doctest::Contains("pad: low must be >= 0 and at most 2^40, got [-1]"), UserError);
  CHECK_THROWS_AS(pad(zeros({2}), {0}, {kHuge}), UserError);
  CHECK_THROWS_AS(pad(zeros({1000000}), {0}, {0}, 0, {kHuge / 4000000}), UserError);
  CHECK_THROWS_AS(pad(zeros({2}), {1LL << 40}, {1LL << 40}), UserError);
  CHECK_THROWS_WITH_AS(pad(zeros({2}), {1, 1}, {0}),
                       doctest::Contains("pad: low needs 1 entries for [2], got [1,1]"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
