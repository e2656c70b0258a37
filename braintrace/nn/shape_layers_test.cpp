// SPDX-License-Identifier: Apache-2.0
// Pooling, Flatten, Sequential and activations.
#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/nn/activation_layers.h"
#include "braintrace/nn/flatten.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/pooling.h"
#include "braintrace/nn/sequential.h"
#include "braintrace/testing/check_module.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::shape_layers_test {
namespace {

using testing::check_module;
using testing::distinct;
using testing::uniform;

Array row(std::vector<double> v) {
  const auto n = static_cast<std::int64_t>(v.size());
  return array({n, 1}, v, DType::f64);
}

double at(const Activation& f, double x) {
  return f(scalar(x, DType::f64)).array().item();
}

}  // namespace

TEST_CASE("pooling layers have the right derivatives") {
  MaxPool1d max1(2);
  AvgPool2d avg2({2, 3}, {.stride = {1, 2}});
  MaxPool2d same(2, {.padding = "SAME"});
  AvgPool3d avg3(2);
  check_module(max1, distinct({5, 2}));
  check_module(avg2, uniform({2, 3, 5, 1}, -1, 1));
  check_module(same, distinct({3, 3, 2}));
  check_module(avg3, uniform({2, 2, 2, 1}, -1, 1));
  AdaptiveMaxPool1d amax(2);
  AdaptiveAvgPool2d aavg({2, 1});
  check_module(amax, distinct({5, 2}));
  check_module(aavg, uniform({2, 5, 3, 1}, -1, 1));
}

TEST_CASE("pooling gives hand-checked values") {
  const Array x = row({1, 5, 2, 4, 9});
  CHECK(MaxPool1d(2)(x).array() == row({5, 4}));
  CHECK(AvgPool1d(2, {.stride = 1})(x).array() == row({3, 3.5, 3, 6.5}));
  CHECK(AvgPool1d(2, {.padding = "SAME"})(x).array() == row({3, 3, 9}));
  CHECK(AdaptiveMaxPool1d(2)(x).array() == row({5, 9}));  // 3 and 2 entries
  CHECK(AdaptiveAvgPool1d(5)(x).array() == x);
}

TEST_CASE("pooling works with channels first and any leading axes") {
  MaxPool2d m(2, {.channel_first = true});
  CHECK(m(zeros({3, 4, 6})).shape() == Shape{3, 2, 3});
  CHECK(m(zeros({5, 2, 3, 4, 6})).shape() == Shape{5, 2, 3, 2, 3});
}

TEST_CASE("Flatten joins a sample row-major and keeps leading axes") {
  Flatten all, tail(1), sized(Shape{2, 3});
  CHECK(all(zeros({2, 3})).shape() == Shape{6});
  CHECK(tail(zeros({4, 2, 3})).shape() == Shape{4, 6});
  CHECK(sized(zeros({2, 3})).shape() == Shape{6});
  CHECK(sized(zeros({4, 5, 2, 3})).shape() == Shape{4, 5, 6});
  CHECK(Unflatten({2, 3})(zeros({4, 6})).shape() == Shape{4, 2, 3});
  check_module(sized, uniform({2, 3}, -1, 1));
}

TEST_CASE("Sequential runs its layers in order, under numbers or names") {
  Sequential m(std::make_unique<Linear>(2, 3), std::make_unique<Tanh>(),
               std::make_unique<Linear>(3, 1));
  check_module(m, uniform({2}, -1, 1));
  CHECK(state_dict(m).count("layers/2/weight/bias") == 1);
  Sequential named({{"first", std::make_shared<Linear>(2, 3)},
                    {"second", std::make_shared<Apply>("relu")}});
  init_all_states(named);
  CHECK(state_dict(named).count("first/weight/weight") == 1);
  CHECK(named(zeros({2})).array() == zeros({3}));
}

TEST_CASE("every named activation has the right derivative") {
  for (const std::string& name : activation_names()) {
    Apply m{Activation(name)};
    check_module(m, uniform({2, 4}, -4, 4));
  }
}

TEST_CASE("activations give hand-checked values") {
  CHECK(at("elu", -1) == doctest::Approx(std::exp(-1.0) - 1));
  CHECK(at("elu", 1000) == 1000);
  CHECK(at("gelu", 1) == doctest::Approx(0.8411919906082768).epsilon(1e-9));
  CHECK(at("gelu_exact", 1) == doctest::Approx(0.8413447460685429).epsilon(1e-9));
  CHECK(at("gelu_tanh", 1) == doctest::Approx(0.8411919906082768));
  CHECK(at("hard_sigmoid", 1) == doctest::Approx(4.0 / 6));
  CHECK(at("hard_swish", 1) == doctest::Approx(4.0 / 6));
  CHECK(at("hard_shrink", 0.4) == 0);
  CHECK(at("soft_shrink", -0.7) == doctest::Approx(-0.2));
  CHECK(at("leaky_relu", -2) == doctest::Approx(-0.02));
  CHECK(at("log_sigmoid", 0) == doctest::Approx(-std::log(2.0)));
  CHECK(at("mish", 1) == doctest::Approx(0.8650983882673103));
  CHECK(at("prelu", -2) == -0.5);
  CHECK(at("relu6", 7) == 6);
  CHECK(at("selu", 1) == doctest::Approx(1.0507009873554805));
  CHECK(at("silu", 1) == doctest::Approx(0.7310585786300049));
  CHECK(at("soft_sign", -1) == -0.5);
  CHECK(at("sparse_plus", -2) == 0);
  CHECK(at("sparse_plus", 0) == 0.25);
  CHECK(at("sparse_plus", 3) == 3);
  CHECK(at("sparse_sigmoid", 0.5) == 0.75);
  CHECK(at("squareplus", 0) == 1);
  CHECK(at("tanh_shrink", 1) == doctest::Approx(1 - std::tanh(1.0)));
  CHECK(at([](const Value& x) { return x * 3; }, 2) == 6);
}

TEST_CASE("activation layers take their options") {
  CHECK(ELU(2)(scalar(-1, DType::f64)).array().item() ==
        doctest::Approx(2 * (std::exp(-1.0) - 1)));
  CHECK(HardTanh(-2, 2)(scalar(5)).array().item() == 2);
  CHECK(GLU(-1)(zeros({4})).shape() == Shape{2});
  PReLU prelu(4);
  check_module(prelu, uniform({2, 4}, -1, 1));
  RReLU rrelu;
  check_module(rrelu, uniform({2, 4}, -1, 1));
  rrelu.set_training(false);
  CHECK(rrelu(scalar(-1, DType::f64)).array().item() ==
        doctest::Approx(-(0.125 + 1.0 / 3) / 2));
}

TEST_CASE("shape layers and activations refuse bad arguments") {
  CHECK_THROWS_WITH_AS(Activation("nope"), doctest::Contains("unknown name 'nope'"),
                       UserError);
  CHECK_THROWS_WITH_AS(MaxPool2d(0), "MaxPool2d: kernel_size must be >= 1, got 0",
                       UserError);
  CHECK_THROWS_WITH_AS(AvgPool1d(2, {.padding = "x"}),
                       "AvgPool1d: padding must be 'SAME' or 'VALID', got 'x'",
                       UserError);
  CHECK_THROWS_WITH_AS(AdaptiveAvgPool1d(4)(row({1, 2})),
                       "AdaptiveAvgPool1d: target_size must be at most the axis size 2, "
                       "got 4",
                       UserError);
  CHECK_THROWS_WITH_AS(Flatten(Shape{2, 3})(zeros({3, 2})),
                       "Flatten: x must end with [2,3], got [3,2]", UserError);
  CHECK_THROWS_WITH_AS(Sequential(std::vector<Sequential::Child>{}),
                       "Sequential: needs at least one layer, got none", UserError);
  CHECK_THROWS_WITH_AS(GLU(-1)(zeros({3})), "glu: the axis must have an even size, got 3",
                       UserError);
  CHECK_THROWS_WITH_AS(HardTanh(1, -1), "HardTanh: low must be <= high, got 1 and -1",
                       UserError);
}

}  // namespace braintrace::nn::shape_layers_test
