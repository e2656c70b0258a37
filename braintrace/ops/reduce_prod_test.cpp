// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

TEST_CASE("reduce_prod") {
  check_op({.op = "reduce_prod",
            .build =
                [](const Values& in) {
                  return Values{prod(in[0], {.axes = {0, 2}})};
                },
            .inputs = {uniform({2, 3, 4}, 0.5, 2)}});
  check_op({.op = "reduce_prod",
            .build = [](const Values& in) { return Values{prod(in[0], {.axes = {-1}})}; },
            .inputs = {uniform({2, 1}, 0.5, 2)},
            .expect = {{{array({2, 3}, {1, 2, 3, 4, 5, 6}, DType::f64)},
                        {array({6, 120}, DType::f64)}}}});
}

TEST_CASE("prod has the right derivative where elements are zero") {
  check_op({.op = "reduce_prod",
            .build = [](const Values& in) { return Values{prod(in[0], {.axes = {1}})}; },
            .inputs = {array({3, 5},
                             {2, 0, 3, 5, 7,   // one zero: its own derivative is 210
                              2, 0, 3, 0, 7,   // two: all derivatives are 0
                              2, 3, 5, 7, 0},  // at the end
                             DType::f64)}});
}

TEST_CASE("prod of nothing is one") {
  check_op({.op = "reduce_prod",
            .build = [](const Values& in) { return Values{prod(in[0], {.axes = {1}})}; },
            .inputs = {zeros({2, 0}, DType::f64)},
            .expect = {{{zeros({2, 0}, DType::f64)}, {ones({2}, DType::f64)}}}});
}

TEST_CASE("prod multiplies integers and booleans") {
  CHECK(prod(array({2, -3, 4}, DType::i32)).array() == scalar(-24, DType::i32));
  CHECK(prod(array({1, 0}, DType::boolean)).array() == scalar(0, DType::i32));
  CHECK(prod(array({65536, 65536}, DType::i32)).array() == scalar(0, DType::i32));
}

}  // namespace
}  // namespace braintrace
