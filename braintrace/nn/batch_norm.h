// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalisation over the batch and all spatial axes.
#include "braintrace/model/long_term_state.h"
#include "braintrace/model/module.h"

namespace braintrace::nn {

struct BatchNormOptions {
  std::int64_t feature_axis = -1;  // of in_size
  double epsilon = 1e-5;
  double momentum = 0.99;
  bool affine = true;               // needs track_running_stats
  bool track_running_stats = true;  // false: x is returned unchanged
  bool use_fast_variance = false;   // norm.h, moments
};

// Training: m, v = mean and population variance of x over all axes but the features', and
// running = momentum running + (1 - momentum) (m, v). Otherwise m, v = running.
// y = (x - m) / sqrt(v + epsilon) scale + bias.
// x (..., *spatial, C) with N spatial axes. Training mixes the samples of a batch, which
// the compiler counts as a mixing op.
// Parameter 'weight' with leaves scale and bias; states 'running_mean' and 'running_var',
// which stay when a sequence begins; all as in_size with 1 for the other axes.
template <int N>
class BatchNorm : public Module {
 public:
  BatchNorm(Shape in_size, BatchNormOptions options = {});  // [*spatial, C]
  Value update(Value x) override;

  std::optional<ParamState> weight;  // absent without affine
  LongTermState running_mean, running_var;

 private:
  Shape in_size_;
  BatchNormOptions options_;
  Ints reduced_axes(std::int64_t rank) const;
};

using BatchNorm0d = BatchNorm<0>;
using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;

extern template class BatchNorm<0>;
extern template class BatchNorm<1>;
extern template class BatchNorm<2>;
extern template class BatchNorm<3>;

}  // namespace braintrace::nn
