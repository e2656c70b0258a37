// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/registry.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

void check_geometry(const ConvGeometry& g, Shape x, Shape kernel) {
  check_op({.op = "conv_general",
            .build = [=](const Values& in) -> Values {
              return {conv_general(in[0], in[1], g)};
            },
            .inputs = {uniform(x, -1, 1), uniform(kernel, -1, 1, 2)}});
}

TEST_CASE("conv_general") {
  check_op({.op = "conv_general",
            .build = [](const Values& in) -> Values {
              return {conv_general(in[0], in[1], {})};
            },
            .inputs = {uniform({2, 5, 2}, -1, 1), uniform({3, 2, 3}, -1, 1, 2)},
            .expect = {{{array({1, 3, 1}, {1, 2, 3}, DType::f64),
                         array({2, 1, 1}, {10, 1}, DType::f64)},
                        {array({1, 2, 1}, {12, 23}, DType::f64)}}}});
}

TEST_CASE("conv_general with stride, both dilations and uneven padding") {
  check_geometry({.strides = {2, 3},
                  .pad_low = {1, 2},
                  .pad_high = {2, 0},
                  .input_dilation = {2, 1},
                  .kernel_dilation = {1, 2}},
                 {2, 3, 6, 1}, {2, 3, 1, 2});
}

TEST_CASE("conv_general with groups") {
  check_geometry({.strides = {2}, .pad_low = {1}, .pad_high = {1}, .groups = 2},
                 {2, 5, 4}, {3, 2, 6});
}

TEST_CASE("conv_general with one group per channel") {
  check_geometry({.groups = 3}, {1, 4, 3}, {2, 1, 3});
}

TEST_CASE("conv_general crops where padding is negative") {
  check_geometry({.pad_low = {-1}, .pad_high = {-2}}, {1, 7, 1}, {2, 1, 2});
  const Value y = conv_general(array({1, 4, 1}, {1, 2, 3, 4}), ones({1, 1, 1}),
                               {.pad_low = {-1}, .pad_high = {-1}});
  CHECK(y.array() == array({1, 2, 1}, {2, 3}));
}

TEST_CASE("conv_general whose stride leaves input unused") {
  check_geometry({.strides = {3}}, {1, 6, 1}, {2, 1, 1});
}

TEST_CASE("conv_general in three dimensions") {
  check_geometry({}, {1, 2, 3, 2, 1}, {2, 2, 1, 1, 2});
}

TEST_CASE("conv_general with a window larger than x is empty") {
  CHECK(conv_general(zeros({1, 2, 1}), zeros({3, 1, 2}), {}).shape() == Shape{1, 0, 2});
  CHECK(conv_general(zeros({0, 4, 1}), zeros({3, 1, 2}), {}).shape() == Shape{0, 2, 2});
}

TEST_CASE("conv_general refuses groups that do not divide") {
  CHECK_THROWS_WITH_AS(
      conv_general(zeros({1, 4, 3}), zeros({2, 1, 4}), {.groups = 2}),
      doctest::Contains("2 groups must divide 3 input and 4 output channels"), UserError);
  CHECK_THROWS_AS(conv_general(zeros({1, 4, 4}), zeros({2, 2, 3}), {.groups = 2}),
                  UserError);
}

TEST_CASE("conv_general refuses what does not fit") {
  const Array x = zeros({1, 4, 2}), k = zeros({2, 2, 3});
  CHECK_THROWS_WITH_AS(conv_general(x, zeros({2, 5, 3}), {}),
                       doctest::Contains("kernel [2,5,3] must have 2 channels per group"),
                       UserError);
  CHECK_THROWS_WITH_AS(conv_general(x, k, {.strides = {0}}),
                       doctest::Contains("strides must be between 1"), UserError);
  CHECK_THROWS_AS(conv_general(x, k, {.strides = {1, 1}}), UserError);
  CHECK_THROWS_AS(conv_general(x, k, {.kernel_dilation = {-1}}), UserError);
  CHECK_THROWS_AS(conv_general(x, k, {.pad_low = {std::int64_t{1} << 60}}), UserError);
  CHECK_THROWS_AS(conv_general(x, k, {.groups = 0}), UserError);
  CHECK_THROWS_AS(conv_general(x, zeros({0, 2, 3}), {}), UserError);
  CHECK_THROWS_AS(conv_general(zeros({4, 2}), k, {}), UserError);
  CHECK_THROWS_AS(conv_general(zeros({1, 4}), zeros({2, 3}), {}), UserError);
}

TEST_CASE("same padding puts the odd element behind") {
  const ConvGeometry g = same_padding({5}, {2}, {.strides = {2}});
  CHECK(g.pad_low == Ints{0});
  CHECK(g.pad_high == Ints{1});
  const ConvGeometry wide = same_padding({5}, {3}, {.kernel_dilation = {2}});
  CHECK(wide.pad_low == Ints{2});
  CHECK(wide.pad_high == Ints{2});
  CHECK_THROWS_AS(same_padding({5}, {2}, {.input_dilation = {2}}), UserError);
  CHECK_THROWS_AS(same_padding({5}, {2, 2}, {}), UserError);
}

}  // namespace
}  // namespace braintrace
