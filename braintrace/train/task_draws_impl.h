// SPDX-License-Identifier: Apache-2.0
#pragma once
// Draws of one sample, in order, from one key; and checks the tasks share.
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "braintrace/array/rng.h"

namespace braintrace::internal {

class Draws {
 public:
  explicit Draws(RngKey key) : key_(key) {}
  double uniform() { return uniform_at(key_, counter_++); }  // [0, 1)
  double normal() { return normal_at(key_, counter_++); }
  bool chance(double p) { return uniform() < p; }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(n));
  }

 private:
  RngKey key_;
  std::uint64_t counter_ = 0;
};

// 0 before `first`, 1 from there on.
inline std::vector<double> mask_from(std::int64_t steps, std::int64_t first) {
  std::vector<double> mask(static_cast<std::size_t>(steps), 0);
  for (std::int64_t t = first; t < steps; ++t) mask[static_cast<std::size_t>(t)] = 1;
  return mask;
}

inline void require_count(std::string_view task, std::string_view name,
                          std::int64_t value, std::int64_t least) {
  constexpr std::int64_t most = 1'000'000;
  BT_REQUIRE(
      value >= least && value <= most,
      fmt::format("{}: {} must lie in [{}, {}], got {}", task, name, least, most, value));
}

// Of a spike in one step of 1 ms.
inline double spike_probability(std::string_view task, std::string_view name,
                                double rate) {
  constexpr double steps_per_second = 1000;
  BT_REQUIRE(rate >= 0 && rate <= steps_per_second,
             fmt::format("{}: {} must lie in [0, {}] per second, got {}", task, name,
                         steps_per_second, rate));
  return rate / steps_per_second;
}

}  // namespace braintrace::internal
