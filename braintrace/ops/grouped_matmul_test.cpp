// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("grouped_matmul") {
  check_op({.op = "grouped_matmul",
            .build = [](const Values& in) -> Values {
              return {grouped_matmul(in[0], in[1], in[2])};
            },
            .inputs = {uniform({3, 2, 4}, -1, 1), uniform({2, 4, 3}, -1, 1, 2),
                       uniform({2, 3}, -1, 1, 3)},
            .expect = {
                {{array({2, 1}, {2, 3}, DType::f64), array({2, 1, 1}, {5, 7}, DType::f64),
                  array({2, 1}, {1, -1}, DType::f64)},
                 {array({2, 1}, {11, 20}, DType::f64)}}}});
}

TEST_CASE("grouped_matmul of one sample without bias") {
  check_op(
      {.op = "grouped_matmul",
       .build = [](const Values& in) -> Values { return {grouped_matmul(in[0], in[1])}; },
       .inputs = {uniform({2, 3}, -1, 1), uniform({2, 3, 2}, -1, 1, 2)}});
}

TEST_CASE("grouped_matmul with two leading axes") {
  check_op(
      {.op = "grouped_matmul",
       .build = [](const Values& in) -> Values { return {grouped_matmul(in[0], in[1])}; },
       .inputs = {uniform({2, 3, 2, 2}, -1, 1), uniform({2, 2, 2}, -1, 1, 2)}});
}

TEST_CASE("grouped_matmul of an empty batch is empty") {
  CHECK(grouped_matmul(zeros({0, 2, 3}), zeros({2, 3, 4})).shape() == Shape{0, 2, 4});
}

TEST_CASE("grouped_matmul refuses shapes that do not fit") {
  CHECK_THROWS_WITH_AS(grouped_matmul(zeros({3, 3}), zeros({2, 3, 4})),
                       doctest::Contains("grouped_matmul: x must be [..., 2, 3]"),
                       UserError);
  CHECK_THROWS_AS(grouped_matmul(zeros({3}), zeros({1, 3, 4})), UserError);
  CHECK_THROWS_AS(grouped_matmul(zeros({2, 3}), zeros({3, 4})), UserError);
  CHECK_THROWS_AS(grouped_matmul(zeros({2, 3}), zeros({2, 3, 4}), Value(zeros({4}))),
                  UserError);
}

}  // namespace
}  // namespace braintrace
