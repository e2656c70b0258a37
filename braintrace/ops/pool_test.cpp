// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace {
namespace {

const Array kLine = array({1, 5, 1}, {3, -1, 4, -5, -2}, DType::f64);

TEST_CASE("max_pool takes the largest element of each window") {
  CHECK(max_pool(kLine, {.window = {2}}).array() == array({1, 2, 1}, {3, 4}, DType::f64));
  CHECK(max_pool(kLine, {.window = {2}, .strides = {1}}).array() ==
        array({1, 4, 1}, {3, 4, 4, -2}, DType::f64));
}

TEST_CASE("max_pool with SAME padding ignores the padding") {
  CHECK(max_pool(kLine, {.window = {2}, .padding = "SAME"}).array() ==
        array({1, 3, 1}, {3, 4, -2}, DType::f64));
}

TEST_CASE("avg_pool with SAME padding divides by the elements covered") {
  testing::check_close("avg_pool",
                       avg_pool(kLine, {.window = {2}, .padding = "SAME"}).array(),
                       array({1, 3, 1}, {1, -0.5, -2}, DType::f64), tol::f64);
}

TEST_CASE("pooling in two dimensions keeps images and channels apart") {
  const Array x = array({1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40}, DType::f64);
  CHECK(max_pool(x, {.window = {2, 2}}).array() ==
        array({1, 1, 1, 2}, {4, 40}, DType::f64));
  CHECK(avg_pool(x, {.window = {2, 2}}).array() ==
        array({1, 1, 1, 2}, {2.5, 25}, DType::f64));
}

TEST_CASE("pooling differentiates through slices") {
  testing::check_op({.op = "slice",
                     .build = [](const Values& in) -> Values {
                       const PoolOptions same{
                           .window = {3}, .strides = {2}, .padding = "SAME"};
                       return {max_pool(in[0], same), avg_pool(in[0], same)};
                     },
                     .inputs = {testing::distinct({2, 5, 2})}});
}

TEST_CASE("a window larger than x pools to nothing") {
  CHECK(max_pool(kLine, {.window = {6}}).shape() == Shape{1, 0, 1});
}

TEST_CASE("pooling refuses bad options") {
  CHECK_THROWS_WITH_AS(max_pool(kLine, {.window = {2, 2}}),
                       doctest::Contains("max_pool: x must be [n, *spatial, channels]"),
                       UserError);
  CHECK_THROWS_AS(avg_pool(kLine, {.window = {0}}), UserError);
  CHECK_THROWS_AS(avg_pool(kLine, {.window = {2}, .strides = {1, 1}}), UserError);
  CHECK_THROWS_WITH_AS(avg_pool(kLine, {.window = {2}, .padding = "same"}),
                       doctest::Contains("padding must be SAME or VALID, got 'same'"),
                       UserError);
}

}  // namespace
}  // namespace braintrace
