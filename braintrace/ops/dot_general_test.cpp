// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("dot_general") {
  check_op({.op = "dot_general",
            .build = [](const Values& in) -> Values {
              return {dot_general(in[0], in[1], {{1}, {0}})};
            },
            .inputs = {uniform({3, 4}, -1, 1), uniform({4, 2}, -1, 1, 2)},
            .expect = {{{array({2, 2}, {1, 2, 3, 4}, DType::f64),
                         array({2, 1}, {5, 6}, DType::f64)},
                        {array({2, 1}, {17, 39}, DType::f64)}}}});
}

TEST_CASE("dot_general with batch axes out of order and two contracted axes") {
  check_op({.op = "dot_general",
            .build = [](const Values& in) -> Values {
              return {dot_general(in[0], in[1], {{0, 3}, {2, 0}, {2}, {1}})};
            },
            .inputs = {uniform({2, 3, 4, 5}, -1, 1), uniform({5, 4, 2, 3}, -1, 1, 2)}});
}

TEST_CASE("dot_general without contracted axes is an outer product") {
  check_op({.op = "dot_general",
            .build = [](const Values& in) -> Values {
              return {dot_general(in[0], in[1], {{}, {}})};
            },
            .inputs = {uniform({2}, -1, 1), uniform({3}, -1, 1, 2)},
            .expect = {{{array({2}, {1, 2}, DType::f64), array({2}, {3, 5}, DType::f64)},
                        {array({2, 2}, {3, 5, 6, 10}, DType::f64)}}}});
}

TEST_CASE("dot_general over an empty axis is zero") {
  const Value y = dot_general(zeros({2, 0}), zeros({0, 3}), {{1}, {0}});
  CHECK(y.array() == zeros({2, 3}));
  CHECK(dot_general(zeros({0, 2}), zeros({2, 3}), {{1}, {0}}).shape() == Shape{0, 3});
}

TEST_CASE("dot_general of integers wraps around") {
  const Array a = Array::from<std::int32_t>({1}, {65536});
  CHECK(dot_general(a, a, {{0}, {0}}).array().at(0) == 0);
}

TEST_CASE("dot_general refuses axes that do not pair") {
  const Array a = zeros({2, 3}), b = zeros({4, 5});
  CHECK_THROWS_WITH_AS(dot_general(a, b, {{1}, {0}}),
                       doctest::Contains("contracted axes 1 of [2,3] and 0 of [4,5]"),
                       UserError);
  CHECK_THROWS_AS(dot_general(a, b, {{1}, {}}), UserError);
  CHECK_THROWS_AS(dot_general(a, a, {{0, 0}, {0, 1}}), UserError);
  CHECK_THROWS_AS(dot_general(a, a, {{0}, {0}, {0}, {0}}), UserError);
  CHECK_THROWS_AS(dot_general(a, a, {{2}, {0}}), UserError);
}

TEST_CASE("dot_general in program text may not name an axis out of range") {
  const char* text =
      "in %0:f32[2,3] %1:f32[3,2] %2:f32[2,2] = dot_general {lhs_batch=[], "
      "lhs_contract=[-1], rhs_batch=[], rhs_contract=[0]} %0 %1 out %2";
  CHECK_THROWS_WITH_AS(parse(text), doctest::Contains("axis -1 is outside rank 2"),
                       UserError);
}

TEST_CASE("dot follows numpy for every rank") {
  const Array v = array({2}, {1, 2}), m = array({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(dot(v, v).array().item() == 5);
  CHECK(dot(v, m).array() == array({3}, {9, 12, 15}));
  CHECK(dot(zeros({4, 5, 2}), m).shape() == Shape{4, 5, 3});
  CHECK_THROWS_WITH_AS(dot(m, m), doctest::Contains("dot: [2,3] and [2,3] do not chain"),
                       UserError);
  CHECK_THROWS_AS(dot(1.0, m), UserError);
}

TEST_CASE("stacked_dot multiplies stacks of matrices pair by pair") {
  const Array a = array({2, 1, 2}, {1, 2, 3, 4}), b = array({2, 2, 1}, {1, 1, 10, 100});
  CHECK(stacked_dot(a, b).array() == array({2, 1, 1}, {3, 430}));
  CHECK(stacked_dot(array({1, 2}, {1, 2}), b).array() == array({2, 1, 1}, {3, 210}));
  CHECK(stacked_dot(array({2}, {1, 2}), b).array() == array({2, 1}, {3, 210}));
  CHECK(stacked_dot(a, array({2}, {1, 1})).array() == array({2, 1}, {3, 7}));
  CHECK(stacked_dot(zeros({5, 1, 2, 3}), zeros({4, 3, 6})).shape() == Shape{5, 4, 2, 6});
  CHECK_THROWS_WITH_AS(stacked_dot(zeros({2, 1, 2}), zeros({3, 2, 1})),
                       doctest::Contains("stacked_dot: [2,1,2] and [3,2,1] do not chain"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
