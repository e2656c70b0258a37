// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalisation within one sample. Under online learning these mix positions: history is
// cut where they stand between a trained op and its state, and the compiler says so.
#include "braintrace/model/module.h"
#include "braintrace/nn/initializers.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

// Mean and population variance over the axes of `over`: in two passes, or fast as
// max(E[x^2] - E[x]^2, 0), which loses the digits the mean has in common with x.
struct Moments {
  Value mean, variance;
};
Moments moments(const Value& x, const ReduceOptions& over,
                bool use_fast_variance = false);

struct StandardizeOptions {
  Ints axes = {-1};
  double epsilon = 1e-5;
  bool use_fast_variance = false;
};
// (x - m) / sqrt(v + epsilon), m and v the moments over the axes.
Value standardize(const Value& x, const StandardizeOptions& options = {});

struct LayerNormOptions {
  Ints reduction_axes = {-1};
  Ints feature_axes = {-1};  // axes with a scale and a bias of their own
  double epsilon = 1e-6;
  bool use_bias = true;
  bool use_scale = true;
  bool use_fast_variance = false;
};

// y = standardize(x) scale + bias. Axes are negative: they count from the end, so leading
// axes of x are free. Parameter 'weight' with leaves scale and bias, as in_size with 1
// for the other axes.
class LayerNorm : public Module {
 public:
  LayerNorm(Shape in_size, LayerNormOptions options = {});
  Value update(Value x) override;

  std::optional<ParamState> weight;  // absent without scale and bias

 private:
  Shape in_size_;
  LayerNormOptions options_;
};

struct RMSNormOptions {
  Ints reduction_axes = {-1};
  Ints feature_axes = {-1};  // axes with a scale of their own
  double epsilon = 1e-6;
  bool use_scale = true;
};

// y = x / sqrt(mean(x^2) + epsilon) scale. Axes as LayerNorm's. Parameter 'scale' with
// the leaf scale, shaped as LayerNorm's.
class RMSNorm : public Module {
 public:
  explicit RMSNorm(std::int64_t in_size, RMSNormOptions options = {});
  explicit RMSNorm(Shape in_size, RMSNormOptions options = {});
  Value update(Value x) override;

  std::optional<ParamState> scale;  // absent without scale

 private:
  Shape in_size_;
  RMSNormOptions options_;
};

struct GroupNormOptions {
  std::optional<std::int64_t> num_groups = {};  // default 32, unless group_size is given
  std::optional<std::int64_t> group_size = {};
  double epsilon = 1e-6;
  bool use_bias = true;
  bool use_scale = true;
  bool use_fast_variance = false;
};

// Splits the last axis into groups and standardises each one, over the axes between the
// first, which is the batch's, and the last too; then scale and bias per feature.
// Parameter 'weight' with leaves scale and bias [features].
class GroupNorm : public Module {
 public:
  explicit GroupNorm(std::int64_t in_size, GroupNormOptions options = {});
  Value update(Value x) override;

  std::optional<ParamState> weight;  // absent without scale and bias

 private:
  std::int64_t in_size_, num_groups_;
  GroupNormOptions options_;
};

}  // namespace braintrace::nn
