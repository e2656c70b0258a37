// SPDX-License-Identifier: Apache-2.0
// Norms and dropout; recorded numbers are in golden_test.cpp.
#include "braintrace/nn/norm.h"

#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/nn/batch_norm.h"
#include "braintrace/nn/dropout.h"
#include "braintrace/nn/sequential.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/check_module.h"
#include "braintrace/testing/check_op.h"
#include "braintrace/testing/tolerance.h"

namespace braintrace::nn::norm_test {
namespace {

using testing::check_close;
using testing::check_module;
using testing::uniform;

std::int64_t zeros_in(const Array& a) {
  std::int64_t n = 0;
  for (double v : a.to_doubles()) n += v == 0;
  return n;
}

}  // namespace

TEST_CASE("norms within a sample have the right derivatives") {
  LayerNorm layer({4}), spatial({2, 4}, {.reduction_axes = {-2, -1}, .use_bias = false});
  RMSNorm rms(4);
  GroupNorm group(4, {.group_size = 2}),
      bare(4, {.num_groups = 2, .use_bias = false, .use_scale = false});
  for (Module* m : std::initializer_list<Module*>{&layer, &spatial, &rms, &group, &bare})
    check_module(*m, uniform({3, 2, 4}, -1, 1));
  check_module(layer, uniform({4}, -1, 1));
}

TEST_CASE("the fast variance agrees with the two passes where no digits are lost") {
  const Array x = uniform({3, 4}, -1, 1);
  LayerNorm layer({4}), fast_layer({4}, {.use_fast_variance = true});
  GroupNorm group(4, {.num_groups = 2}),
      fast_group(4, {.num_groups = 2, .use_fast_variance = true});
  BatchNorm0d batch({4}), fast_batch({4}, {.use_fast_variance = true});
  const std::vector<std::pair<Module*, Module*>> pairs = {
      {&layer, &fast_layer}, {&group, &fast_group}, {&batch, &fast_batch}};
  for (const auto& [slow, fast] : pairs) {
    init_all_states(*slow, {.dtype = DType::f64});
    init_all_states(*fast, {.dtype = DType::f64});
    check_close("fast", (*fast)(x).array(), (*slow)(x).array(), tol::f64);
    check_module(*fast, x);
  }
}

TEST_CASE("the fast variance is never negative, the two passes keep small spreads") {
  // In f32 the squares of numbers near 10000 are known to 8 only.
  const Array x = array({10000.25, 10000, 9999.75, 10000});
  const Moments slow = moments(x, {}), fast = moments(x, {}, true);
  CHECK(slow.variance.array().item() == 0.03125);
  CHECK(fast.variance.array().item() >= 0);
  CHECK(fast.variance.array().item() != 0.03125);
}

TEST_CASE("LayerNorm parameters take the shape of the feature axes") {
  LayerNorm m({2, 3, 4}, {.reduction_axes = {-1}, .feature_axes = {-3, -1}});
  CHECK(m.weight->spec(0).shape == Shape{2, 1, 4});
  LayerNorm last({2, 3, 4});
  CHECK(last.weight->spec(0).shape == Shape{1, 1, 4});
  RMSNorm rms({2, 3, 4}, {.feature_axes = {-2, -1}});
  CHECK(rms.scale->spec(0).shape == Shape{1, 3, 4});
  LayerNorm bare({4}, {.use_bias = false, .use_scale = false});
  CHECK(collect_states(bare).empty());
}

TEST_CASE("RMSNorm divides by the root mean square over its axes") {
  RMSNorm m({2, 2}, {.reduction_axes = {-2, -1}, .epsilon = 0});
  init_all_states(m, {.dtype = DType::f64});
  CHECK(state_dict(m).count("scale/scale") == 1);
  const Array x = array({2, 2}, {1, 1, 1, 5}, DType::f64);  // mean square 7
  const double s = 1 / std::sqrt(7);
  check_close("rms", m(x).array(), array({2, 2}, {s, s, s, 5 * s}, DType::f64), tol::f64);
}

TEST_CASE("GroupNorm takes its moments over the axes between batch and features too") {
  GroupNorm m(2, {.num_groups = 2, .epsilon = 0});
  init_all_states(m, {.dtype = DType::f64});
  const Array x = array({2, 2, 2}, {1, 10, 3, 30, 5, 0, 9, 8}, DType::f64);
  const Array y = array({2, 2, 2}, {-1, -1, 1, 1, -1, -1, 1, 1}, DType::f64);
  check_close("groups", m(x).array(), y, tol::f64);
}

TEST_CASE("BatchNorm has the right derivatives, training and not") {
  BatchNorm0d m({3});
  BatchNorm1d spatial({2, 3});
  check_module(m, uniform({4, 3}, -1, 1));
  check_module(spatial, uniform({4, 2, 3}, -1, 1));
  m.set_training(false);
  check_module(m, uniform({4, 3}, -1, 1));
  check_module(m, uniform({3}, -1, 1));
}

TEST_CASE("BatchNorm normalises with the batch and remembers a running mean") {
  BatchNorm0d m({1}, {.epsilon = 0, .momentum = 0.75});
  init_all_states(m, {.dtype = DType::f64});
  const Array x = array({2, 1}, {1, 5}, DType::f64);  // mean 3, variance 4
  check_close("training", m(x).array(), array({2, 1}, {-1, 1}, DType::f64), tol::f64);
  CHECK(m.running_mean.stored().item() == doctest::Approx(0.75));
  CHECK(m.running_var.stored().item() == doctest::Approx(0.75 + 1));
  m.set_training(false);
  const double scale = 1 / std::sqrt(1.75);
  check_close("use", m(x).array(),
              array({2, 1}, {0.25 * scale, 4.25 * scale}, DType::f64), tol::f64);
  CHECK(m.running_mean.stored().item() == doctest::Approx(0.75));
}

TEST_CASE("BatchNorm keeps its running statistics unbatched") {
  BatchNorm2d m({2, 2, 3});
  init_all_states(m, {.batch_size = 5});
  CHECK(m.running_mean.stored().shape() == Shape{1, 1, 3});
  CHECK(m(zeros({5, 2, 2, 3})).shape() == Shape{5, 2, 2, 3});
  CHECK(m.running_var.stored().shape() == Shape{1, 1, 3});
}

TEST_CASE("running statistics stay when states begin anew, unless a seed is given") {
  BatchNorm0d m({1}, {.momentum = 0.5});
  init_all_states(m);
  m(array({2, 1}, {1, 5}));
  init_all_states(m, {.batch_size = 2});
  CHECK(m.running_mean.stored().item() == 1.5);
  CHECK(m.running_var.stored().item() == 2.5);
  init_all_states(m, {.seed = 1});
  CHECK(m.running_mean.stored().item() == 0);
}

TEST_CASE("BatchNorm without tracking returns its input") {
  BatchNorm0d m({2}, {.affine = false, .track_running_stats = false});
  init_all_states(m);
  CHECK(m(array({1, 2})).array() == array({1, 2}));
  CHECK(collect_states(m).empty());
}

TEST_CASE("Dropout keeps its share, scales it, and only while training") {
  Dropout m(0.25);
  init_all_states(m);
  const Array y = m(ones({4000})).array();
  for (double v : y.to_doubles()) CHECK((v == 0 || v == 4));
  CHECK(zeros_in(y) == doctest::Approx(3000).epsilon(0.05));
  CHECK_FALSE(m(ones({4000})).array() == y);
  m.set_training(false);
  CHECK(m(ones({3})).array() == ones({3}));
}

TEST_CASE("Dropout has the right derivatives and repeats under a trace") {
  Dropout m(0.5);
  check_module(m, testing::steps_of(uniform({2, 6}, 1, 2)));
}

TEST_CASE("Dropout2d drops whole channels") {
  Dropout2d m(0.5);
  init_all_states(m);
  const Array y = m(ones({20, 2, 2, 3})).array();
  for (std::int64_t lane = 0; lane < 20; ++lane)
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t p = 1; p < 4; ++p)
        CHECK(y.at(lane * 12 + p * 3 + c) == y.at(lane * 12 + c));
  CHECK(zeros_in(y) > 0);
  CHECK(zeros_in(y) < 240);
}

TEST_CASE("the training flag reaches every module below") {
  Sequential m(std::make_unique<Dropout>(0.5), std::make_unique<Dropout>(0.5));
  CHECK(m.training());
  m.set_training(false);
  CHECK_FALSE(m[1].training());
  init_all_states(m);
  CHECK(m(ones({5})).array() == ones({5}));
}

TEST_CASE("norms and dropout refuse bad arguments") {
  CHECK_THROWS_WITH_AS(GroupNorm(6, {.num_groups = 4}),
                       "GroupNorm: num_groups must divide in_size 6, got 4", UserError);
  CHECK_THROWS_WITH_AS(GroupNorm(6, {.group_size = 4}),
                       "GroupNorm: group_size must divide in_size 6, got 4", UserError);
  CHECK_THROWS_WITH_AS(GroupNorm(6, {.num_groups = 2, .group_size = 3}),
                       "GroupNorm: give num_groups or group_size, not both", UserError);
  CHECK_THROWS_WITH_AS(LayerNorm({4}, {.reduction_axes = {0}}),
                       "LayerNorm: reduction_axes must lie in [-1, -1], got 0",
                       UserError);
  CHECK_THROWS_WITH_AS(RMSNorm(4, {.epsilon = -1}),
                       "RMSNorm: epsilon must be >= 0 and finite, got -1", UserError);
  CHECK_THROWS_WITH_AS(BatchNorm1d({3}),
                       "BatchNorm1d: in_size must hold 1 spatial sizes and the channels, "
                       "got [3]",
                       UserError);
  CHECK_THROWS_WITH_AS(BatchNorm0d({3}, {.track_running_stats = false}),
                       "BatchNorm0d: affine needs track_running_stats", UserError);
  CHECK_THROWS_WITH_AS(Dropout(0), "Dropout: keep_prob must lie in (0, 1], got 0",
                       UserError);
  LayerNorm m({4});
  init_all_states(m);
  CHECK_THROWS_WITH_AS(m(zeros({3})), "LayerNorm: x must end with [4], got [3]",
                       UserError);
}

}  // namespace braintrace::nn::norm_test
