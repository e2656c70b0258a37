// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/losses.h"

#include <fmt/format.h>

#include "braintrace/ops/indexing.h"
#include "braintrace/ops/ops.h"

namespace braintrace {
namespace {

void require_float(const char* who, const Value& v) {
  BT_REQUIRE_KIND(is_float(v.dtype()), ErrorKind::type,
                  fmt::format("{}: the prediction must be f32 or f64, got {}", who,
                              to_string(v.dtype())));
}

// The target in the prediction's element type.
Value matched(const char* who, const Value& prediction, const Value& target) {
  require_float(who, prediction);
  BT_REQUIRE(prediction.shape() == target.shape(),
             fmt::format("{}: prediction and target must have one shape, got {} and {}",
                         who, to_string(prediction.shape()), to_string(target.shape())));
  return astype(target, prediction.dtype());
}

// Labels that raise when run outside [0, classes).
Value labels_for(const char* who, const Value& scores, const Value& labels) {
  require_float(who, scores);
  BT_REQUIRE(scores.rank() >= 1,
             fmt::format("{}: scores need a class axis, got a scalar", who));
  BT_REQUIRE_KIND(
      labels.dtype() == DType::i32, ErrorKind::type,
      fmt::format("{}: labels must be i32, got {}", who, to_string(labels.dtype())));
  Shape lead = scores.shape();
  lead.pop_back();
  BT_REQUIRE(labels.shape() == lead,
             fmt::format("{}: labels must be {}, got {}", who, to_string(lead),
                         to_string(labels.shape())));
  return checked_labels(who, labels, scores.dim(-1));
}

// mean of -log_probs[label]. Selecting, not multiplying by 0, keeps -inf elsewhere
// harmless.
Value picked_mean(const Value& log_probs, const Value& labels) {
  const Value chosen = equal(expand_dims(labels, -1), iota(log_probs.dim(-1)));
  return -mean(sum(select(chosen, log_probs, 0), {.axes = {-1}}));
}

}  // namespace

Value mse(const Value& prediction, const Value& target) {
  return mean(square(prediction - matched("mse", prediction, target)));
}

Value l1(const Value& prediction, const Value& target) {
  return mean(abs(prediction - matched("l1", prediction, target)));
}

Value huber(const Value& prediction, const Value& target, double delta) {
  BT_REQUIRE(delta > 0, fmt::format("huber: delta must be > 0, got {}", delta));
  const Value e = prediction - matched("huber", prediction, target);
  const Value size = abs(e);
  return mean(select(size <= delta, 0.5 * square(e), delta * (size - 0.5 * delta)));
}

Value softmax_cross_entropy(const Value& logits, const Value& labels) {
  const Value checked = labels_for("softmax_cross_entropy", logits, labels);
  return picked_mean(log_softmax(logits), checked);
}

Value nll(const Value& log_probs, const Value& labels) {
  const Value checked = labels_for("nll", log_probs, labels);
  return picked_mean(log_probs, checked);
}

Value binary_cross_entropy(const Value& logits, const Value& target) {
  const Value t = matched("binary_cross_entropy", logits, target);
  return mean(softplus(logits) - logits * t);
}

Value cosine_loss(const Value& prediction, const Value& target, std::int64_t axis) {
  const Value t = matched("cosine_loss", prediction, target);
  const ReduceOptions along{.axes = {axis}};
  constexpr double smallest = 1e-16;  // squared length: keeps a zero vector finite
  const Value p_scale = rsqrt(maximum(sum(square(prediction), along), smallest));
  const Value t_scale = rsqrt(maximum(sum(square(t), along), smallest));
  return 1 - mean(sum(prediction * t, along) * p_scale * t_scale);
}

Value firing_rate_penalty(const Value& spikes, const FiringRatePenalty& options) {
  require_float("firing_rate_penalty", spikes);
  const double per_step = options.target_hz * options.dt / 1000;
  return options.factor * square(mean(spikes) - per_step);
}

Value potential_penalty(const Value& V, const PotentialPenalty& options) {
  require_float("potential_penalty", V);
  BT_REQUIRE(options.low <= options.high,
             fmt::format("potential_penalty: low must be <= high, got {} and {}",
                         options.low, options.high));
  const Value above = square(relu(V - options.high));
  const Value below = square(relu(options.low - V));
  return options.factor * square(mean(above + below));
}

}  // namespace braintrace
