// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/norm.h"

#include <cmath>

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

void require_epsilon(const char* who, double epsilon) {
  BT_REQUIRE(epsilon >= 0 && std::isfinite(epsilon),
             fmt::format("{}: epsilon must be >= 0 and finite, got {}", who, epsilon));
}

std::vector<LeafSpec> affine_leaves(const Shape& shape, bool scale, bool bias) {
  std::vector<LeafSpec> specs;
  if (scale) specs.push_back({"scale", shape, init::constant(1)});
  if (bias) specs.push_back({"bias", shape, init::zero()});
  return specs;
}

// Negative axes only, within the rank of in_size.
void check_axes(const char* who, const Shape& in_size, const char* what,
                const Ints& axes) {
  const auto rank = static_cast<std::int64_t>(in_size.size());
  BT_REQUIRE(!axes.empty(), fmt::format("{}: {} must not be empty", who, what));
  for (std::int64_t a : axes)
    BT_REQUIRE(a < 0 && a >= -rank,
               fmt::format("{}: {} must lie in [{}, -1], got {}", who, what, -rank, a));
}

// in_size on the feature axes, 1 elsewhere.
template <class Options>
Shape feature_shape(const char* who, const Shape& in_size, const Options& o) {
  for (std::int64_t d : in_size) internal::positive(who, "every entry of in_size", d);
  check_axes(who, in_size, "reduction_axes", o.reduction_axes);
  check_axes(who, in_size, "feature_axes", o.feature_axes);
  require_epsilon(who, o.epsilon);
  Shape shape(in_size.size(), 1);
  for (std::int64_t a : o.feature_axes) *(shape.end() + a) = *(in_size.end() + a);
  return shape;
}

Value affine(Value y, std::optional<ParamState>& weight, bool scale, bool bias) {
  if (scale) y = y * weight->value("scale");
  if (bias) y = y + weight->value("bias");
  return y;
}

std::int64_t groups_of(std::int64_t in, const GroupNormOptions& o) {
  internal::positive("GroupNorm", "in_size", in);
  require_epsilon("GroupNorm", o.epsilon);
  BT_REQUIRE(!(o.num_groups && o.group_size),
             "GroupNorm: give num_groups or group_size, not both");
  if (o.group_size) internal::positive("GroupNorm", "group_size", *o.group_size);
  BT_REQUIRE(!o.group_size || in % *o.group_size == 0,
             fmt::format("GroupNorm: group_size must divide in_size {}, got {}", in,
                         o.group_size.value_or(0)));
  const std::int64_t groups =
      o.group_size ? in / *o.group_size : o.num_groups.value_or(32);
  internal::positive("GroupNorm", "num_groups", groups);
  BT_REQUIRE(
      in % groups == 0,
      fmt::format("GroupNorm: num_groups must divide in_size {}, got {}", in, groups));
  return groups;
}

}  // namespace

Moments moments(const Value& x, const ReduceOptions& over, bool use_fast_variance) {
  const Value m = mean(x, over);
  if (!use_fast_variance) return {m, mean(square(x - m), over)};
  return {m, maximum(mean(square(x), over) - square(m), 0)};
}

Value standardize(const Value& x, const StandardizeOptions& o) {
  require_epsilon("standardize", o.epsilon);
  const Moments m = moments(x, {.axes = o.axes, .keepdims = true}, o.use_fast_variance);
  return (x - m.mean) * rsqrt(m.variance + o.epsilon);
}

LayerNorm::LayerNorm(Shape in_size, LayerNormOptions options)
    : in_size_(std::move(in_size)), options_(std::move(options)) {
  const Shape shape = feature_shape("LayerNorm", in_size_, options_);
  if (!options_.use_scale && !options_.use_bias) return;
  weight.emplace(affine_leaves(shape, options_.use_scale, options_.use_bias));
  add("weight", *weight);
}

Value LayerNorm::update(Value x) {
  internal::require_ends_with("LayerNorm", x, in_size_);
  const Value y = standardize(x, {.axes = options_.reduction_axes,
                                  .epsilon = options_.epsilon,
                                  .use_fast_variance = options_.use_fast_variance});
  return affine(y, weight, options_.use_scale, options_.use_bias);
}

RMSNorm::RMSNorm(std::int64_t in_size, RMSNormOptions options)
    : RMSNorm(Shape{internal::positive("RMSNorm", "in_size", in_size)},
              std::move(options)) {}

RMSNorm::RMSNorm(Shape in_size, RMSNormOptions options)
    : in_size_(std::move(in_size)), options_(std::move(options)) {
  const Shape shape = feature_shape("RMSNorm", in_size_, options_);
  if (!options_.use_scale) return;
  scale.emplace(affine_leaves(shape, true, false));
  add("scale", *scale);
}

Value RMSNorm::update(Value x) {
  internal::require_ends_with("RMSNorm", x, in_size_);
  const Value power =
      mean(square(x), {.axes = options_.reduction_axes, .keepdims = true});
  const Value y = x * rsqrt(power + options_.epsilon);
  return options_.use_scale ? y * scale->value("scale") : y;
}

GroupNorm::GroupNorm(std::int64_t in_size, GroupNormOptions options)
    : in_size_(in_size), num_groups_(groups_of(in_size, options)), options_(options) {
  if (!options_.use_scale && !options_.use_bias) return;
  weight.emplace(affine_leaves({in_size}, options_.use_scale, options_.use_bias));
  add("weight", *weight);
}

Value GroupNorm::update(Value x) {
  internal::require_features("GroupNorm", x, in_size_);
  const Shape shape = x.shape();
  Shape split(shape.begin(), shape.end() - 1);
  split.push_back(num_groups_);
  split.push_back(in_size_ / num_groups_);
  Ints axes;
  for (std::int64_t a = 1; a < x.rank() - 1; ++a) axes.push_back(a);
  axes.push_back(-1);
  const Value y =
      standardize(reshape(x, split), {.axes = axes,
                                      .epsilon = options_.epsilon,
                                      .use_fast_variance = options_.use_fast_variance});
  return affine(reshape(y, shape), weight, options_.use_scale, options_.use_bias);
}

}  // namespace braintrace::nn
