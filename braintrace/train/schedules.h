// SPDX-License-Identifier: Apache-2.0
#pragma once
// Learning rates as functions of a count n = 0, 1, 2, ... (updates or epochs).
#include <cstdint>
#include <functional>
#include <vector>

namespace braintrace {

using Schedule = std::function<double(std::int64_t n)>;

namespace schedule {

Schedule constant(double rate);
// base gamma^floor(n / every)
Schedule step(double base, std::int64_t every, double gamma = 0.1);
// base gamma^(number of milestones <= n); milestones ascend
Schedule multistep(double base, std::vector<std::int64_t> milestones, double gamma = 0.1);
// base rate^(n / steps)
Schedule exponential(double base, std::int64_t steps, double rate);
// from base to last along half a cosine, then last
Schedule cosine(double base, std::int64_t steps, double last = 0);
// last + (base - last) (1 - n / steps)^power, then last
Schedule polynomial(double base, std::int64_t steps, double power = 1, double last = 0);
// rises from rate(0) / steps to rate(0) over `steps` counts, then follows `rate` from its
// start
Schedule warmup(std::int64_t steps, Schedule rate);

}  // namespace schedule
}  // namespace braintrace
