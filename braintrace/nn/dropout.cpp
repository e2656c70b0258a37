// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/dropout.h"

#include <fmt/format.h>

#include "braintrace/ops/ops.h"

namespace braintrace::nn {
namespace {

double checked(const std::string& who, double keep_prob) {
  BT_REQUIRE(keep_prob > 0 && keep_prob <= 1,
             fmt::format("{}: keep_prob must lie in (0, 1], got {}", who, keep_prob));
  return keep_prob;
}

// One decision per entry of mask_shape, stretched over x.
Value drop(const Value& x, RngState& key, const Shape& mask_shape, double keep_prob) {
  const Value kept = random_bernoulli(key.next(), keep_prob, mask_shape);
  return select(broadcast_to(kept, x.shape()), x / keep_prob, 0);
}

}  // namespace

Dropout::Dropout(double keep_prob) : keep_prob_(checked("Dropout", keep_prob)) {
  add("key", key);
}

Value Dropout::update(Value x) {
  if (!training() || keep_prob_ == 1) return x;
  return drop(x, key, x.shape(), keep_prob_);
}

template <int N>
ChannelDropout<N>::ChannelDropout(double keep_prob)
    : keep_prob_(checked(fmt::format("Dropout{}d", N), keep_prob)) {
  add("key", key);
}

template <int N>
Value ChannelDropout<N>::update(Value x) {
  Shape shape = x.shape();
  BT_REQUIRE(shape.size() > N,
             fmt::format("Dropout{}d: x needs {} spatial axes and the channels, got {}",
                         N, N, to_string(shape)));
  if (!training() || keep_prob_ == 1) return x;
  for (int i = 0; i < N; ++i) *(shape.end() - 2 - i) = 1;
  return drop(x, key, shape, keep_prob_);
}

template class ChannelDropout<1>;
template class ChannelDropout<2>;
template class ChannelDropout<3>;

}  // namespace braintrace::nn
