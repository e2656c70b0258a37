// SPDX-License-Identifier: Apache-2.0
// Functions composed of other ops: no records of their own, so every rule follows.
#include <limits>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/ops/elementwise.h"

namespace braintrace {
namespace {

// Under a trace: one number and a node that stretches it, not an array of equal numbers.
Value full_like(const Value& x, double number) {
  const Type t = x.type();
  const std::shared_ptr<Builder> trace = common_builder({&x, 1});
  if (!trace) return full(t.shape, number, t.dtype);
  return broadcast_to(trace->constant(scalar(number, t.dtype)), t.shape);
}

// The largest entry along the axis, 0 where it is infinite: inf - inf would be NaN.
// A shift that cancels out, so it needs no derivative. The axis counts from the front
// afterwards.
Value shift(const char* who, const Value& x, std::int64_t& axis) {
  axis = normalize_axis(who, axis, x.rank());
  const Value m = stop_gradient(max(x, {.axes = {axis}, .keepdims = true}));
  return select(equal(abs(m), std::numeric_limits<double>::infinity()), 0, m);
}

}  // namespace

Value zeros_like(const Value& x) { return full_like(x, 0); }
Value ones_like(const Value& x) { return full_like(x, 1); }

Value square(Arg x) {
  const LocationScope here(x.loc);
  const Value v = settle(x);
  return v * v;
}

// Not maximum(x, 0): the derivative at 0 is 0. NaN stays NaN.
Value relu(Arg x) {
  const LocationScope here(x.loc);
  const Value v = settle(x);
  return select(v <= 0, 0, v);
}

Value mean(Arg x, ReduceOptions options) {
  const LocationScope here(x.loc);
  const Value v = settle_float(x);
  Ints axes = normalize_axes("mean", options.axes, v.rank());
  if (axes.empty()) axes = iota_ints(v.rank());
  double count = 1;
  for (std::int64_t a : axes) count *= static_cast<double>(v.dim(a));
  return sum(v, {.axes = axes, .keepdims = options.keepdims}) / count;
}

// (x - mean) / sqrt(variance + epsilon) over the axes.
Value layer_norm(Arg x, const Ints& axes, double epsilon) {
  BT_REQUIRE(epsilon >= 0,
             fmt::format("layer_norm: epsilon must not be negative, got {}", epsilon));
  const LocationScope here(x.loc);
  const Value v = settle_float(x);
  const Value centred = v - mean(v, {.axes = axes, .keepdims = true});
  const Value variance = mean(centred * centred, {.axes = axes, .keepdims = true});
  return centred * rsqrt(variance + epsilon);
}

Value softmax(Arg x, std::int64_t axis) {
  const LocationScope here(x.loc);
  const Value v = settle_float(x);
  const Value e = exp(v - shift("softmax", v, axis));
  return e / sum(e, {.axes = {axis}, .keepdims = true});
}

Value log_softmax(Arg x, std::int64_t axis) {
  const LocationScope here(x.loc);
  const Value v = settle_float(x);
  const Value shifted = v - shift("log_softmax", v, axis);
  return shifted - log(sum(exp(shifted), {.axes = {axis}, .keepdims = true}));
}

Value logsumexp(Arg x, std::int64_t axis) {
  const LocationScope here(x.loc);
  const Value v = settle_float(x);
  const Value m = shift("logsumexp", v, axis);
  return log(sum(exp(v - m), {.axes = {axis}})) + squeeze(m, axis);
}

// An index outside [0, n) gives a row of zeros.
Value one_hot(Arg indices, std::int64_t n, DType dtype) {
  const LocationScope here(indices.loc);
  const Value i = settle(indices);
  BT_REQUIRE_KIND(
      i.dtype() == DType::i32, ErrorKind::type,
      fmt::format("one_hot: indices must be i32, got {}", to_string(i.type())));
  BT_REQUIRE(n >= 0, fmt::format("one_hot: n must not be negative, got {}", n));
  return astype(equal(expand_dims(i, -1), iota(n)), dtype);
}

}  // namespace braintrace
