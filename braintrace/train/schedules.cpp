// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/schedules.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/base/error.h"

namespace braintrace::schedule {
namespace {

void require_rate(const char* who, double rate) {
  BT_REQUIRE(
      rate >= 0 && std::isfinite(rate),
      fmt::format("schedule::{}: a rate must be >= 0 and finite, got {}", who, rate));
}

void require_steps(const char* who, std::int64_t steps) {
  BT_REQUIRE(steps >= 1,
             fmt::format("schedule::{}: steps must be >= 1, got {}", who, steps));
}

// How far n is on the way to `steps`, in [0, 1].
double progress(std::int64_t n, std::int64_t steps) {
  return std::clamp(static_cast<double>(n) / static_cast<double>(steps), 0.0, 1.0);
}

}  // namespace

Schedule constant(double rate) {
  require_rate("constant", rate);
  return [rate](std::int64_t) { return rate; };
}

Schedule step(double base, std::int64_t every, double gamma) {
  require_rate("step", base);
  require_rate("step", gamma);
  require_steps("step", every);
  return [=](std::int64_t n) {
    return base * std::pow(gamma, static_cast<double>(n / every));
  };
}

Schedule multistep(double base, std::vector<std::int64_t> milestones, double gamma) {
  require_rate("multistep", base);
  require_rate("multistep", gamma);
  BT_REQUIRE(std::is_sorted(milestones.begin(), milestones.end()),
             fmt::format("schedule::multistep: milestones must ascend, got {}",
                         fmt::join(milestones, ", ")));
  return [=](std::int64_t n) {
    const auto passed = std::upper_bound(milestones.begin(), milestones.end(), n);
    return base * std::pow(gamma, static_cast<double>(passed - milestones.begin()));
  };
}

Schedule exponential(double base, std::int64_t steps, double rate) {
  require_rate("exponential", base);
  require_rate("exponential", rate);
  require_steps("exponential", steps);
  return [=](std::int64_t n) {
    return base * std::pow(rate, static_cast<double>(n) / static_cast<double>(steps));
  };
}

Schedule cosine(double base, std::int64_t steps, double last) {
  require_rate("cosine", base);
  require_rate("cosine", last);
  require_steps("cosine", steps);
  return [=](std::int64_t n) {
    constexpr double pi = 3.14159265358979323846;
    return last + 0.5 * (base - last) * (1 + std::cos(pi * progress(n, steps)));
  };
}

Schedule polynomial(double base, std::int64_t steps, double power, double last) {
  require_rate("polynomial", base);
  require_rate("polynomial", last);
  require_steps("polynomial", steps);
  BT_REQUIRE(power > 0,
             fmt::format("schedule::polynomial: power must be > 0, got {}", power));
  return [=](std::int64_t n) {
    return last + (base - last) * std::pow(1 - progress(n, steps), power);
  };
}

Schedule warmup(std::int64_t steps, Schedule rate) {
  require_steps("warmup", steps);
  BT_REQUIRE(rate, "schedule::warmup: needs a schedule to follow, got none");
  return [steps, rate = std::move(rate)](std::int64_t n) {
    if (n >= steps) return rate(n - steps);
    return rate(0) * static_cast<double>(n + 1) / static_cast<double>(steps);
  };
}

}  // namespace braintrace::schedule
