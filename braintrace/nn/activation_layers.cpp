// SPDX-License-Identifier: Apache-2.0
#include "braintrace/nn/activation_layers.h"

#include <cmath>

#include <fmt/format.h>

#include "braintrace/nn/check_impl.h"

namespace braintrace::nn {

HardTanh::HardTanh(double low, double high) : low_(low), high_(high) {
  BT_REQUIRE(low <= high,
             fmt::format("HardTanh: low must be <= high, got {} and {}", low, high));
}

PReLU::PReLU(std::int64_t num_parameters, double slope)
    : weight({internal::positive("PReLU", "num_parameters", num_parameters)},
             constant_init(slope)),
      num_parameters_(num_parameters) {
  add("weight", weight);
}

Value PReLU::update(Value x) {
  if (num_parameters_ > 1) internal::require_features("PReLU", x, num_parameters_);
  return select(x >= 0, x, x * weight.value());
}

RReLU::RReLU(double low, double high) : low_(low), high_(high) {
  BT_REQUIRE(
      std::isfinite(low) && low <= high && std::isfinite(high),
      fmt::format("RReLU: low must be <= high, both finite, got {} and {}", low, high));
  add("key", key);
}

Value RReLU::update(Value x) {
  if (!training()) return leaky_relu(x, 0.5 * (low_ + high_));
  const Value u = random_uniform(key.next(), x.shape(), x.dtype());
  return select(x >= 0, x, (low_ + (high_ - low_) * u) * x);
}

}  // namespace braintrace::nn
