// SPDX-License-Identifier: Apache-2.0
// Layers between weights: normalisation, pooling, dropout and reshaping.
#include <fmt/core.h>

#include "braintrace/nn/batch_norm.h"
#include "braintrace/nn/dropout.h"
#include "braintrace/nn/flatten.h"
#include "braintrace/nn/model_layers_impl.h"
#include "braintrace/nn/norm.h"
#include "braintrace/nn/pooling.h"

namespace braintrace::nn::internal {
namespace {

// Row-major reshape of the last `rank` axes to one.
struct FlattenLast : Module {
  std::int64_t rank;
  explicit FlattenLast(std::int64_t r) : rank(r) {}
  Value update(Value x) override {
    BT_REQUIRE(x.rank() >= rank,
               fmt::format("flatten: x must have at least {} axes, got {}", rank,
                           to_string(x.shape())));
    const Shape in = x.shape();
    Shape out(in.begin(), in.end() - rank);
    out.push_back(-1);
    return reshape(x, out);
  }
};

// Joins all axes of a sample, or those its arguments name.
std::unique_ptr<Module> make_flatten(LayerSpec& l) {
  const std::int64_t rank = l.rank;
  l.rank = 1;
  if (l.args.find("in_size")) return std::make_unique<Flatten>(l.args.sizes("in_size"));
  if (l.args.find("start_axis"))
    return std::make_unique<Flatten>(l.args.integers("start_axis", {}).at(0));
  return std::make_unique<FlattenLast>(rank);
}

std::unique_ptr<Module> make_unflatten(LayerSpec& l) {
  const Ints sizes = l.args.sizes("sizes");
  l.rank += static_cast<std::int64_t>(sizes.size()) - 1;
  return std::make_unique<Unflatten>(sizes);
}

std::unique_ptr<Module> make_layer_norm(LayerSpec& l) {
  const LayerNormOptions usual;
  return std::make_unique<LayerNorm>(
      l.args.sizes("in_size"),
      LayerNormOptions{
          .reduction_axes = l.args.integers("reduction_axes", usual.reduction_axes),
          .feature_axes = l.args.integers("feature_axes", usual.feature_axes),
          .epsilon = l.args.number("epsilon", usual.epsilon),
          .use_bias = l.args.flag("use_bias", usual.use_bias),
          .use_scale = l.args.flag("use_scale", usual.use_scale),
          .use_fast_variance = l.args.flag("use_fast_variance", false)});
}

std::unique_ptr<Module> make_rms_norm(LayerSpec& l) {
  const RMSNormOptions usual;
  return std::make_unique<RMSNorm>(
      l.args.sizes("in_size"),
      RMSNormOptions{
          .reduction_axes = l.args.integers("reduction_axes", usual.reduction_axes),
          .feature_axes = l.args.integers("feature_axes", usual.feature_axes),
          .epsilon = l.args.number("epsilon", usual.epsilon),
          .use_scale = l.args.flag("use_scale", usual.use_scale)});
}

std::unique_ptr<Module> make_group_norm(LayerSpec& l) {
  GroupNormOptions o{.epsilon = l.args.number("epsilon", GroupNormOptions().epsilon),
                     .use_bias = l.args.flag("use_bias", true),
                     .use_scale = l.args.flag("use_scale", true),
                     .use_fast_variance = l.args.flag("use_fast_variance", false)};
  if (l.args.find("num_groups")) o.num_groups = l.args.size("num_groups");
  if (l.args.find("group_size")) o.group_size = l.args.size("group_size");
  return std::make_unique<GroupNorm>(l.args.sizes("in_size").back(), o);
}

void require_last_axis(LayerSpec& l, const char* option) {
  if (l.args.integers(option, {-1}) != Ints{-1}) l.args.refuse(option, "-1");
}

template <int N>
std::unique_ptr<Module> make_batch_norm(LayerSpec& l) {
  const Ints axis = l.args.integers("feature_axis", {-1});
  if (axis.size() != 1) l.args.refuse("feature_axis", "one axis");
  const BatchNormOptions usual;
  return std::make_unique<BatchNorm<N>>(
      l.args.sizes("in_size"),
      BatchNormOptions{.feature_axis = axis[0],
                       .epsilon = l.args.number("epsilon", usual.epsilon),
                       .momentum = l.args.number("momentum", usual.momentum),
                       .affine = l.args.flag("affine", usual.affine),
                       .track_running_stats =
                           l.args.flag("track_running_stats", usual.track_running_stats),
                       .use_fast_variance = l.args.flag("use_fast_variance", false)});
}

template <PoolKind K, int N>
std::unique_ptr<Module> make_pool(LayerSpec& l) {
  require_last_axis(l, "channel_axis");
  l.args.ignore({"in_size"});
  PoolLayerOptions o{.padding = l.args.text("padding", "VALID"),
                     .channel_first = l.args.flag("channel_first", false)};
  if (l.args.find("stride")) o.stride = l.args.sizes("stride");
  return std::make_unique<Pool<K, N>>(l.args.sizes("kernel_size"), o);
}

template <PoolKind K, int N>
std::unique_ptr<Module> make_adaptive_pool(LayerSpec& l) {
  require_last_axis(l, "channel_axis");
  l.args.ignore({"in_size"});
  return std::make_unique<AdaptivePool<K, N>>(
      l.args.sizes("target_size"),
      AdaptivePoolOptions{.channel_first = l.args.flag("channel_first", false)});
}

// `prob` is the share that is kept.
template <class Layer>
std::unique_ptr<Module> make_dropout(LayerSpec& l) {
  return std::make_unique<Layer>(l.args.number("prob", l.args.number("keep_prob", 0.5)));
}

}  // namespace

std::vector<LayerKind> shape_layers() {
  using enum PoolKind;
  return {
      {"AdaptiveAvgPool1d", make_adaptive_pool<average, 1>},
      {"AdaptiveAvgPool2d", make_adaptive_pool<average, 2>},
      {"AdaptiveAvgPool3d", make_adaptive_pool<average, 3>},
      {"AdaptiveMaxPool1d", make_adaptive_pool<max, 1>},
      {"AdaptiveMaxPool2d", make_adaptive_pool<max, 2>},
      {"AdaptiveMaxPool3d", make_adaptive_pool<max, 3>},
      {"AvgPool1d", make_pool<average, 1>},
      {"AvgPool2d", make_pool<average, 2>},
      {"AvgPool3d", make_pool<average, 3>},
      {"BatchNorm0d", make_batch_norm<0>},
      {"BatchNorm1d", make_batch_norm<1>},
      {"BatchNorm2d", make_batch_norm<2>},
      {"BatchNorm3d", make_batch_norm<3>},
      {"Dropout", make_dropout<Dropout>},
      {"Dropout1d", make_dropout<Dropout1d>},
      {"Dropout2d", make_dropout<Dropout2d>},
      {"Dropout3d", make_dropout<Dropout3d>},
      {"Flatten", make_flatten},
      {"GroupNorm", make_group_norm},
      {"LayerNorm", make_layer_norm},
      {"MaxPool1d", make_pool<max, 1>},
      {"MaxPool2d", make_pool<max, 2>},
      {"MaxPool3d", make_pool<max, 3>},
      {"RMSNorm", make_rms_norm},
      {"Unflatten", make_unflatten},
      {"flatten", make_flatten},
  };
}

}  // namespace braintrace::nn::internal
