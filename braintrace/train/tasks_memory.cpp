// SPDX-License-Identifier: Apache-2.0
// Tasks that ask for something seen a while ago: copying, delayed match, adding,
// evidence.
#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "braintrace/train/task_draws_impl.h"
#include "braintrace/train/tasks.h"

namespace braintrace {

using internal::Draws;
using internal::mask_from;
using internal::require_count;
using internal::spike_probability;

Task copying_task(const CopyingOptions& o) {
  require_count("copying", "symbols", o.symbols, 2);
  require_count("copying", "length", o.length, 1);
  require_count("copying", "delay", o.delay, 0);
  const std::int64_t T = 2 * o.length + o.delay, F = o.symbols + 2, cue = o.symbols + 1;
  const auto generate = [=](RngKey key, Split) {
    Draws draw(key);
    Task::Sample s{std::vector<float>(T * F), std::vector<float>(T)};
    for (std::int64_t t = 0; t < T; ++t) {
      std::int64_t shown = t < o.length + o.delay ? 0 : cue;
      if (t < o.length) {
        shown = 1 + draw.below(o.symbols);
        s.targets[T - o.length + t] = static_cast<float>(shown);
      }
      s.inputs[t * F + shown] = 1;
    }
    return s;
  };
  return {"copying", TaskLoss::softmax_xent,
          {T, F, F}, mask_from(T, T - o.length),
          generate,  o.task};
}

Task delayed_match_task(const DelayedMatchOptions& o) {
  require_count("delayed_match", "channels", o.channels, 2);
  require_count("delayed_match", "steps", o.steps, 4);
  const double p_on = spike_probability("delayed_match", "rate", o.rate);
  const double p_off = spike_probability("delayed_match", "background", o.background);
  const std::int64_t T = o.steps, C = o.channels, quarter = T / 4;
  const auto generate = [=](RngKey key, Split) {
    Draws draw(key);
    const std::int64_t sample = draw.below(C);
    const bool match = draw.chance(0.5);
    const std::int64_t test = match ? sample : (sample + C / 2) % C;
    Task::Sample s{std::vector<float>(T * C), std::vector<float>(T, match ? 1.F : 0.F)};
    for (std::int64_t t = 0; t < T; ++t) {
      const std::int64_t on = t < quarter ? sample : t >= T - quarter ? test : -1;
      for (std::int64_t c = 0; c < C; ++c)
        s.inputs[t * C + c] = draw.chance(c == on ? p_on : p_off) ? 1.F : 0.F;
    }
    return s;
  };
  return {"delayed_match", TaskLoss::softmax_xent,
          {T, C, 2},       mask_from(T, T - quarter),
          generate,        o.task};
}

Task adding_task(const AddingOptions& o) {
  require_count("adding", "steps", o.steps, 2);
  const std::int64_t T = o.steps;
  const auto generate = [=](RngKey key, Split) {
    Draws draw(key);
    Task::Sample s{std::vector<float>(T * 2), std::vector<float>(T)};
    for (std::int64_t t = 0; t < T; ++t)
      s.inputs[2 * t] = static_cast<float>(draw.uniform());
    const std::int64_t half = T / 2;
    const std::int64_t a = draw.below(half), b = half + draw.below(T - half);
    s.inputs[2 * a + 1] = s.inputs[2 * b + 1] = 1;
    s.targets[T - 1] = s.inputs[2 * a] + s.inputs[2 * b];
    return s;
  };
  return {"adding", TaskLoss::mse, {T, 2, 1}, mask_from(T, T - 1), generate, o.task};
}

Task evidence_task(const EvidenceOptions& o) {
  require_count("evidence", "cues", o.cues, 1);
  BT_REQUIRE(
      o.cues % 2 == 1,
      fmt::format("evidence: cues must be odd, so that there is a majority, got {}",
                  o.cues));
  require_count("evidence", "cue_steps", o.cue_steps, 1);
  require_count("evidence", "gap_steps", o.gap_steps, 0);
  require_count("evidence", "delay_steps", o.delay_steps, 0);
  require_count("evidence", "recall_steps", o.recall_steps, 1);
  require_count("evidence", "group", o.group, 1);
  BT_REQUIRE(o.p_minor >= 0 && o.p_minor <= 1,
             fmt::format("evidence: p_minor must lie in [0, 1], got {}", o.p_minor));
  const double p_on = spike_probability("evidence", "rate", o.rate);
  const double p_noise = spike_probability("evidence", "noise_rate", o.noise_rate);
  const std::int64_t slot = o.cue_steps + o.gap_steps,
                     recall = o.cues * slot + o.delay_steps;
  const std::int64_t T = recall + o.recall_steps, F = 4 * o.group;
  const auto generate = [=](RngKey key, Split) {
    Draws draw(key);
    const double p_left = draw.chance(0.5) ? o.p_minor : 1 - o.p_minor;
    std::vector<bool> left;
    for (std::int64_t i = 0; i < o.cues; ++i) left.push_back(draw.chance(p_left));
    const bool label = 2 * std::count(left.begin(), left.end(), true) > o.cues;
    Task::Sample s{std::vector<float>(T * F), std::vector<float>(T, label ? 1.F : 0.F)};
    for (std::int64_t t = 0; t < T; ++t) {
      const bool in_cue = t < o.cues * slot && t % slot < o.cue_steps;
      for (std::int64_t f = 0; f < F; ++f) {
        const std::int64_t group = f / o.group;  // left, right, recall, noise
        const bool on = group == 2   ? t >= recall
                        : group == 3 ? false
                                     : in_cue && left[t / slot] == (group == 0);
        const double p = group == 3 ? p_noise : on ? p_on : 0;
        s.inputs[t * F + f] = draw.chance(p) ? 1.F : 0.F;
      }
    }
    return s;
  };
  return {"evidence", TaskLoss::softmax_xent, {T, F, 2}, mask_from(T, recall), generate,
          o.task};
}

}  // namespace braintrace
