// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/batch_norm.h"

#include <cmath>

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/nn/norm.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

// From the front.
std::size_t feature_axis(const BatchNormOptions& o, std::size_t rank) {
  const std::int64_t axis = o.feature_axis;
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank)
                                           : axis);
}

// in_size with 1 for all but the features, after checking sizes and options.
Shape statistics_shape(int n, const Shape& in_size, const BatchNormOptions& o) {
  const std::string who = fmt::format("BatchNorm{}d", n);
  BT_REQUIRE(
      in_size.size() == static_cast<std::size_t>(n) + 1,
      fmt::format("{}: in_size must hold {} spatial sizes and the channels, got {}", who,
                  n, to_string(in_size)));
  for (std::int64_t d : in_size) internal::positive(who, "every entry of in_size", d);
  BT_REQUIRE(o.epsilon >= 0 && std::isfinite(o.epsilon),
             fmt::format("{}: epsilon must be >= 0 and finite, got {}", who, o.epsilon));
  BT_REQUIRE(o.momentum >= 0 && o.momentum <= 1,
             fmt::format("{}: momentum must lie in [0, 1], got {}", who, o.momentum));
  BT_REQUIRE(o.track_running_stats || !o.affine,
             fmt::format("{}: affine needs track_running_stats", who));
  const std::size_t axis = feature_axis(o, in_size.size());
  BT_REQUIRE(axis < in_size.size(),
             fmt::format("{}: feature_axis must be an axis of in_size {}, got {}", who,
                         to_string(in_size), o.feature_axis));
  Shape shape(in_size.size(), 1);
  shape[axis] = in_size[axis];
  return shape;
}

}  // namespace

template <int N>
BatchNorm<N>::BatchNorm(Shape in_size, BatchNormOptions options)
    : running_mean(statistics_shape(N, in_size, options), constant_init(0)),
      running_var(statistics_shape(N, in_size, options), constant_init(1)),
      in_size_(std::move(in_size)),
      options_(options) {
  if (options_.affine) {
    const Shape shape = statistics_shape(N, in_size_, options_);
    weight.emplace(std::vector<LeafSpec>{{"scale", shape, constant_init(1)},
                                         {"bias", shape, constant_init(0)}});
    add("weight", *weight);
  }
  if (!options_.track_running_stats) return;
  add("running_mean", running_mean);
  add("running_var", running_var);
}

template <int N>
Ints BatchNorm<N>::reduced_axes(std::int64_t rank) const {
  const auto lead = rank - static_cast<std::int64_t>(in_size_.size());
  Ints axes = iota_ints(rank);
  axes.erase(axes.begin() + lead +
             static_cast<std::ptrdiff_t>(feature_axis(options_, in_size_.size())));
  return axes;
}

template <int N>
Value BatchNorm<N>::update(Value x) {
  internal::require_ends_with(fmt::format("BatchNorm{}d", N), x, in_size_);
  if (!options_.track_running_stats) return x;
  Value m = running_mean.value();
  Value v = running_var.value();
  if (training()) {
    const bool last = feature_axis(options_, in_size_.size()) + 1 == in_size_.size();
    const ReduceOptions over{.axes = reduced_axes(x.rank()), .keepdims = !last};
    const Moments sample = x.rank() == 1 ? Moments{x, zeros_like(x)}
                                         : moments(x, over, options_.use_fast_variance);
    const double kept = options_.momentum;
    const Shape shape = m.shape();
    running_mean.set(kept * m + (1 - kept) * reshape(sample.mean, shape));
    running_var.set(kept * v + (1 - kept) * reshape(sample.variance, shape));
    m = sample.mean;
    v = sample.variance;
  }
  const Value y = (x - m) * rsqrt(v + options_.epsilon);
  if (!options_.affine) return y;
  return y * weight->value("scale") + weight->value("bias");
}

template class BatchNorm<0>;
template class BatchNorm<1>;
template class BatchNorm<2>;
template class BatchNorm<3>;

}  // namespace braintrace::nn
