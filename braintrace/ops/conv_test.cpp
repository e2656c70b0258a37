// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace {
namespace {

using testing::check_close;
using testing::check_op;
using testing::uniform;

// Recorded from the reference library in double precision, rounded to 9 digits.
const Array kX = array(
    {2, 5, 5, 2},
    {0.267,  0.159,  0.217,  0.27,   0.366,  -0.188, -0.146, -0.871, -0.39,  0.136,
     0.523,  0.3,    -0.17,  -0.632, -1.389, 0.576,  -0.295, -0.224, 0.066,  -0.703,
     -0.175, 1.012,  0.253,  0.18,   -0.791, 1.122,  -0.711, 0.961,  -1.058, 0.703,
     0.809,  -0.412, 0.211,  0.274,  -0.407, -0.725, -0.659, 0.271,  -0.043, -0.282,
     0.483,  0.254,  -0.378, -0.601, 0.262,  -0.269, 0.05,   0.788,  0.251,  -0.431,
     0.08,   -0.476, 0.804,  -0.281, 0.104,  0.154,  0.08,   -0.979, -0.723, -0.226,
     0.16,   -0.069, -0.479, -0.674, -0.201, -0.234, 0.256,  -0.163, 0.301,  -0.297,
     -0.128, -0.174, -0.391, 0.313,  -0.407, -0.261, -0.037, -0.649, -0.162, -0.356,
     -0.194, -0.03,  -0.4,   -0.11,  0.654,  -0.013, 0.573,  0.173,  0.387,  -0.387,
     0.052,  0.067,  -0.306, -0.411, -0.745, 0.748,  -0.486, 0.673,  -0.234, -0.431},
    DType::f64);
const Array kKernel = array(
    {3, 3, 2, 3},
    {0.311,  -0.316, 0.284,  -0.166, 0.24,   -0.484, 0.416,  0.244, -0.46, 1.321,  0.27,
     1.145,  0.8,    -0.094, -0.206, -0.202, -0.915, -0.348, 0.123, 0.763, -0.386, 0.441,
     -0.626, -0.293, -0.229, 0.186,  0.229,  0.481,  0.385,  0.122, 0.195, 0.794,  -0.255,
     0.387,  -0.904, 0.206,  -0.242, 0.001,  0.52,   0.082,  0.443, 0.737, 0.195,  0.586,
     -0.163, -0.004, -0.261, 0.521,  0.207,  -0.254, 0.077,  0.521, -0.02, -0.474},
    DType::f64);
const Array kBias = array({3}, {0.066, -0.99, 0.384}, DType::f64);
const Array kSame =
    array({2, 5, 5, 3},
          {-0.035536, -0.666907, 0.822355,  0.127736,  0.259096,  -0.003553, -0.78964,
           -1.491319, 0.19559,   -0.406685, -1.25148,  0.257495,  -0.112639, -0.4537,
           -0.072668, 0.360948,  -0.934788, 0.864036,  1.378759,  -1.732116, 0.763919,
           0.351324,  -0.461946, 0.764034,  -1.267782, -2.299467, 0.410148,  -0.263988,
           -1.933043, 2.085324,  1.663208,  0.730636,  0.337682,  -1.872399, -3.99658,
           0.649054,  1.074663,  -1.872459, 2.084485,  0.156539,  -3.21391,  -0.200381,
           0.201448,  -2.02666,  -0.873168, 0.961644,  -0.711474, 1.955491,  -1.284762,
           -0.194417, -0.114143, 0.887882,  -2.934221, 0.517796,  -0.838455, -0.933122,
           1.785574,  0.189732,  -0.783346, 1.480579,  -0.322986, -0.743588, -0.484519,
           0.572462,  -0.158391, 0.823008,  -1.809058, -2.111666, 0.208608,  0.329507,
           0.408956,  1.272221,  -0.485477, -1.377735, -0.482717, -0.552074, -0.019065,
           0.301906,  -0.672083, -0.725718, 0.502335,  -0.281584, 0.408991,  -0.761476,
           -0.583364, -1.720663, 0.095751,  -0.314473, -0.355644, 0.256017,  -0.195754,
           -0.621836, -0.502392, -0.450773, -1.570699, -0.235525, 0.131488,  -0.086431,
           1.672481,  -2.187672, -0.390553, -1.124045, -0.672531, -1.538225, 0.279381,
           -0.392957, -0.994112, 0.715596,  -1.013161, -1.536177, 0.07476,   0.097241,
           -0.912174, -0.227715, -0.573729, -0.736473, 0.831495,  -0.566812, -0.50091,
           0.341733,  -0.951303, -1.484718, 0.444209,  0.327489,  -0.308139, 0.454234,
           -0.453083, -0.889113, 0.160338,  -1.124084, 0.508357,  0.331195,  -0.374547,
           -0.744808, 0.180922,  -0.550522, -0.743139, 0.573016,  0.277289,  -2.597916,
           0.455418,  1.11539,   -1.767149, 0.251431,  1.58704,   -1.359681, 0.575589,
           -0.05146,  -2.141185, -0.273896},
          DType::f64);
const Array kSameStride2 =
    array({2, 3, 3, 3},
          {-0.035536, -0.666907, 0.822355,  -0.78964,  -1.491319, 0.19559,   -0.112639,
           -0.4537,   -0.072668, 1.663208,  0.730636,  0.337682,  1.074663,  -1.872459,
           2.084485,  0.201448,  -2.02666,  -0.873168, -0.322986, -0.743588, -0.484519,
           -1.809058, -2.111666, 0.208608,  -0.485477, -1.377735, -0.482717, -0.552074,
           -0.019065, 0.301906,  -0.281584, 0.408991,  -0.761476, -0.314473, -0.355644,
           0.256017,  -0.392957, -0.994112, 0.715596,  0.097241,  -0.912174, -0.227715,
           -0.566812, -0.50091,  0.341733,  -0.550522, -0.743139, 0.573016,  1.11539,
           -1.767149, 0.251431,  -0.05146,  -2.141185, -0.273896},
          DType::f64);
const Array kValidDilated =
    array({2, 1, 1, 3}, {0.681932, -2.761593, 0.652775, -0.838678, -1.293552, 1.710337},
          DType::f64);

Values conv_case(const Values& in, const ConvGeometry& g) {
  return {conv(in[0], in[1], g, in[2])};
}

TEST_CASE("conv") {
  check_op({.op = "conv",
            .build =
                [](const Values& in) {
                  return conv_case(in, {.pad_low = {1}, .pad_high = {1}});
                },
            .inputs = {uniform({2, 4, 2}, -1, 1), uniform({3, 2, 3}, -1, 1, 2),
                       uniform({3}, -1, 1, 3)},
            .expect = {
                {{array({1, 2, 1}, {1, 2}, DType::f64),
                  array({3, 1, 1}, {3, 4, 5}, DType::f64), array({1}, {0.5}, DType::f64)},
                 {array({1, 2, 1}, {14.5, 11.5}, DType::f64)}}}});
}

TEST_CASE("conv in two dimensions with stride, dilations, groups and cropping") {
  const ConvGeometry g{.strides = {2, 1},
                       .pad_low = {1, -1},
                       .pad_high = {2, 1},
                       .input_dilation = {2, 1},
                       .kernel_dilation = {1, 2},
                       .groups = 2};
  check_op({.op = "conv",
            .build = [=](const Values& in) { return conv_case(in, g); },
            .inputs = {uniform({2, 3, 5, 2}, -1, 1), uniform({2, 2, 1, 4}, -1, 1, 2),
                       uniform({4}, -1, 1, 3)}});
}

TEST_CASE("conv without leading axes and without bias") {
  check_op({.op = "conv",
            .build = [](const Values& in) -> Values { return {conv(in[0], in[1], {})}; },
            .inputs = {uniform({4, 2}, -1, 1), uniform({2, 2, 3}, -1, 1, 2)}});
}

TEST_CASE("conv with two leading axes") {
  check_op({.op = "conv",
            .build = [](const Values& in) -> Values { return {conv(in[0], in[1], {})}; },
            .inputs = {uniform({2, 1, 4, 1}, -1, 1), uniform({2, 1, 2}, -1, 1, 2)}});
}

TEST_CASE("conv agrees with the reference for SAME, stride 2 and dilation 2") {
  const ConvGeometry same = same_padding({5, 5}, {3, 3}, {});
  check_close("SAME", conv(kX, kKernel, same, Value(kBias)).array(), kSame, tol::golden);
  const ConvGeometry stride2 = same_padding({5, 5}, {3, 3}, {.strides = {2, 2}});
  check_close("SAME, stride 2", conv(kX, kKernel, stride2, Value(kBias)).array(),
              kSameStride2, tol::golden);
  check_close("VALID, dilation 2",
              conv(kX, kKernel, {.kernel_dilation = {2, 2}}, Value(kBias)).array(),
              kValidDilated, tol::golden);
}

TEST_CASE("conv of an empty batch is empty") {
  CHECK(conv(zeros({0, 5, 2}), zeros({3, 2, 4}), {}, Value(zeros({4}))).shape() ==
        Shape{0, 3, 4});
}

TEST_CASE("conv refuses a bias of another size") {
  CHECK_THROWS_WITH_AS(conv(zeros({1, 5, 2}), zeros({3, 2, 4}), {}, Value(zeros({2}))),
                       doctest::Contains("conv: bias must be [4], got [2]"), UserError);
}

TEST_CASE("conv applies its hooks to kernel and bias") {
  const Hook twice = [](const Value& w) { return w * 2; };
  const Value y =
      conv(ones({1, 1, 1}), ones({1, 1, 1}), {}, Value(ones({1})), {twice, twice});
  CHECK(y.array().item() == 4);
}

}  // namespace
}  // namespace braintrace
