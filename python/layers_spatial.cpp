// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling, normalisation, dropout and shapes.
#include "convert.h"
#include "layers.h"

#include "braintrace/nn/batch_norm.h"
#include "braintrace/nn/dropout.h"
#include "braintrace/nn/flatten.h"
#include "braintrace/nn/norm.h"
#include "braintrace/nn/pooling.h"

namespace braintrace::python {
namespace {

using namespace nn;
using Made = std::shared_ptr<Module>;

template <int N>
Made make_conv(Reader& r) {
  const Shape in = r.shape("in_size");
  const std::int64_t out = r.integer("out_channels");
  ConvOptions o;
  r.take("kernel_size", o.kernel_size);
  r.take("stride", o.stride);
  r.take("padding", o.padding);
  r.take("lhs_dilation", o.lhs_dilation);
  r.take("rhs_dilation", o.rhs_dilation);
  r.take("groups", o.groups);
  r.take("w_init", o.w_init);
  r.take_or_none("b_init", o.b_init);
  r.take("w_mask", o.w_mask);
  r.take("channel_first", o.channel_first);
  r.done();
  // One number: only the channels are known.
  if (in.size() == 1) return r.own<Conv<N>>(in[0], out, o);
  return r.own<Conv<N>>(in, out, o);
}

template <PoolKind K, int N>
Made make_pool(Reader& r) {
  const Shape kernel = r.shape("kernel_size");
  PoolLayerOptions o;
  r.take("stride", o.stride);
  r.take("padding", o.padding);
  r.take("channel_first", o.channel_first);
  r.done();
  return r.own<Pool<K, N>>(PerAxis(kernel), o);
}

template <PoolKind K, int N>
Made make_adaptive(Reader& r) {
  const Shape target = r.shape("target_size");
  AdaptivePoolOptions o;
  r.take("channel_first", o.channel_first);
  r.done();
  return r.own<AdaptivePool<K, N>>(PerAxis(target), o);
}

template <int N>
Made make_batch_norm(Reader& r) {
  const Shape in = r.shape("in_size");
  BatchNormOptions o;
  r.take("feature_axis", o.feature_axis);
  r.take("epsilon", o.epsilon);
  r.take("momentum", o.momentum);
  r.take("affine", o.affine);
  r.take("track_running_stats", o.track_running_stats);
  r.take("use_fast_variance", o.use_fast_variance);
  r.done();
  return r.own<BatchNorm<N>>(in, o);
}

Made make_layer_norm(Reader& r) {
  const Shape in = r.shape("in_size");
  LayerNormOptions o;
  r.take("reduction_axes", o.reduction_axes);
  r.take("feature_axes", o.feature_axes);
  r.take("epsilon", o.epsilon);
  r.take("use_bias", o.use_bias);
  r.take("use_scale", o.use_scale);
  r.take("use_fast_variance", o.use_fast_variance);
  r.done();
  return r.own<LayerNorm>(in, o);
}

Made make_rms_norm(Reader& r) {
  const Shape in = r.shape("in_size");
  RMSNormOptions o;
  r.take("epsilon", o.epsilon);
  r.take("use_scale", o.use_scale);
  r.take("reduction_axes", o.reduction_axes);
  r.take("feature_axes", o.feature_axes);
  r.done();
  return r.own<RMSNorm>(in, o);
}

Made make_group_norm(Reader& r) {
  const std::int64_t in = r.integer("in_size");
  GroupNormOptions o;
  r.take("num_groups", o.num_groups);
  r.take("group_size", o.group_size);
  r.take("epsilon", o.epsilon);
  r.take("use_bias", o.use_bias);
  r.take("use_scale", o.use_scale);
  r.take("use_fast_variance", o.use_fast_variance);
  r.done();
  return r.own<GroupNorm>(in, o);
}

template <class D>
Made make_dropout(Reader& r) {
  double keep = 0.5;
  r.take("prob", keep);
  r.done();
  return r.own<D>(keep);
}

Made make_flatten(Reader& r) {
  std::int64_t start = 0;
  Ints in;
  r.take("start_axis", start);
  r.take("in_size", in);
  r.done();
  return in.empty() ? r.own<Flatten>(start) : r.own<Flatten>(in);
}

Made make_unflatten(Reader& r) {
  const Shape sizes = r.shape("sizes");
  r.done();
  return r.own<Unflatten>(sizes);
}

constexpr auto kMax = PoolKind::max;
constexpr auto kAvg = PoolKind::average;
constexpr const char* kConv =
    "Cross-correlation. in_size [*spatial, C], or the number of channels alone: then x "
    "is "
    "(C, *spatial).";
constexpr const char* kPool = "Pooling over windows; x (..., *spatial, C).";
constexpr const char* kAdaptive = "Pooling to a given size; x (..., *spatial, C).";
constexpr const char* kNorm = "Normalisation over the batch and all spatial axes.";

}  // namespace

std::span<const LayerSpec> spatial_layers() {
  using Avg1 = Pool<kAvg, 1>;
  using Avg2 = Pool<kAvg, 2>;
  using Avg3 = Pool<kAvg, 3>;
  using Max1 = Pool<kMax, 1>;
  using Max2 = Pool<kMax, 2>;
  using Max3 = Pool<kMax, 3>;
  static const LayerSpec table[] = {
      {"Conv1d", "Module", make_conv<1>, typeid(Conv<1>), kConv,
       "Conv1d((5, 1), 2, kernel_size=3)", "(5, 1)", "(5, 2)"},
      {"Conv2d", "Module", make_conv<2>, typeid(Conv<2>), kConv,
       "Conv2d(1, 8, kernel_size=3, padding='SAME')", "(1, 6, 6)", "(8, 6, 6)"},
      {"Conv3d", "Module", make_conv<3>, typeid(Conv<3>), kConv,
       "Conv3d((3, 3, 3, 1), 2, kernel_size=2)", "(3, 3, 3, 1)", "(3, 3, 3, 2)"},
      {"MaxPool1d", "Module", make_pool<kMax, 1>, typeid(Max1), kPool, "MaxPool1d(2)",
       "(4, 1)", "(2, 1)"},
      {"MaxPool2d", "Module", make_pool<kMax, 2>, typeid(Max2), kPool, "MaxPool2d(2)",
       "(4, 4, 1)", "(2, 2, 1)"},
      {"MaxPool3d", "Module", make_pool<kMax, 3>, typeid(Max3), kPool, "MaxPool3d(2)",
       "(4, 4, 4, 1)", "(2, 2, 2, 1)"},
      {"AvgPool1d", "Module", make_pool<kAvg, 1>, typeid(Avg1), kPool, "AvgPool1d(2)",
       "(4, 1)", "(2, 1)"},
      {"AvgPool2d", "Module", make_pool<kAvg, 2>, typeid(Avg2), kPool, "AvgPool2d(2)",
       "(4, 4, 1)", "(2, 2, 1)"},
      {"AvgPool3d", "Module", make_pool<kAvg, 3>, typeid(Avg3), kPool, "AvgPool3d(2)",
       "(4, 4, 4, 1)", "(2, 2, 2, 1)"},
      {"AdaptiveMaxPool1d", "Module", make_adaptive<kMax, 1>, typeid(AdaptiveMaxPool1d),
       kAdaptive, "AdaptiveMaxPool1d(2)", "(5, 1)", "(2, 1)"},
      {"AdaptiveMaxPool2d", "Module", make_adaptive<kMax, 2>, typeid(AdaptiveMaxPool2d),
       kAdaptive, "AdaptiveMaxPool2d(2)", "(5, 4, 1)", "(2, 2, 1)"},
      {"AdaptiveMaxPool3d", "Module", make_adaptive<kMax, 3>, typeid(AdaptiveMaxPool3d),
       kAdaptive, "AdaptiveMaxPool3d(2)", "(4, 4, 4, 1)", "(2, 2, 2, 1)"},
      {"AdaptiveAvgPool1d", "Module", make_adaptive<kAvg, 1>, typeid(AdaptiveAvgPool1d),
       kAdaptive, "AdaptiveAvgPool1d(2)", "(5, 1)", "(2, 1)"},
      {"AdaptiveAvgPool2d", "Module", make_adaptive<kAvg, 2>, typeid(AdaptiveAvgPool2d),
       kAdaptive, "AdaptiveAvgPool2d(2)", "(5, 4, 1)", "(2, 2, 1)"},
      {"AdaptiveAvgPool3d", "Module", make_adaptive<kAvg, 3>, typeid(AdaptiveAvgPool3d),
       kAdaptive, "AdaptiveAvgPool3d(2)", "(4, 4, 4, 1)", "(2, 2, 2, 1)"},
  };
  return table;
}

std::span<const LayerSpec> norm_layers() {
  static const LayerSpec table[] = {
      {"BatchNorm0d", "Module", make_batch_norm<0>, typeid(BatchNorm<0>), kNorm,
       "BatchNorm0d(3)", "(2, 3)", "(2, 3)"},
      {"BatchNorm1d", "Module", make_batch_norm<1>, typeid(BatchNorm<1>), kNorm,
       "BatchNorm1d((4, 3))", "(2, 4, 3)", "(2, 4, 3)"},
      {"BatchNorm2d", "Module", make_batch_norm<2>, typeid(BatchNorm<2>), kNorm,
       "BatchNorm2d((4, 4, 3))", "(2, 4, 4, 3)", "(2, 4, 4, 3)"},
      {"BatchNorm3d", "Module", make_batch_norm<3>, typeid(BatchNorm<3>), kNorm,
       "BatchNorm3d((2, 2, 2, 3))", "(2, 2, 2, 2, 3)", "(2, 2, 2, 2, 3)"},
      {"LayerNorm", "Module", make_layer_norm, typeid(LayerNorm),
       "Normalisation within one sample.", "LayerNorm(3)", "3", "(3,)"},
      {"RMSNorm", "Module", make_rms_norm, typeid(RMSNorm),
       "x / sqrt(mean(x^2) + epsilon) scale.", "RMSNorm(3)", "3", "(3,)"},
      {"GroupNorm", "Module", make_group_norm, typeid(GroupNorm),
       "Each group of features on its own.", "GroupNorm(4, num_groups=2)", "4", "(4,)"},
      {"Dropout", "Module", make_dropout<Dropout>, typeid(Dropout),
       "Keeps each entry with probability prob while training.", "Dropout(0.5)", "3",
       "(3,)"},
      {"Dropout1d", "Module", make_dropout<Dropout1d>, typeid(Dropout1d),
       "Keeps whole channels with probability prob.", "Dropout1d(0.5)", "(4, 3)",
       "(4, 3)"},
      {"Dropout2d", "Module", make_dropout<Dropout2d>, typeid(Dropout2d),
       "Keeps whole channels with probability prob.", "Dropout2d(0.5)", "(4, 4, 3)",
       "(4, 4, 3)"},
      {"Dropout3d", "Module", make_dropout<Dropout3d>, typeid(Dropout3d),
       "Keeps whole channels with probability prob.", "Dropout3d(0.5)", "(2, 2, 2, 3)",
       "(2, 2, 2, 3)"},
      {"Flatten", "Module", make_flatten, typeid(Flatten),
       "Joins axes into one, from start_axis on, or those of in_size.", "Flatten()",
       "(2, 3)", "(6,)"},
      {"Unflatten", "Module", make_unflatten, typeid(Unflatten),
       "Splits the last axis into the given sizes.", "Unflatten((2, 3))", "6", "(2, 3)"},
  };
  return table;
}

}  // namespace braintrace::python
