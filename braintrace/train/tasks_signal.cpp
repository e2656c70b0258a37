// SPDX-License-Identifier: Apache-2.0
// Tasks with a target at every step: integrator, pattern generation, text.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include <fmt/core.h>

#include "braintrace/train/task_draws_impl.h"
#include "braintrace/train/tasks.h"

namespace braintrace {
namespace {

using internal::Draws;
using internal::mask_from;
using internal::require_count;

constexpr std::string_view built_in_text =
    "the neuron adds what comes in and forgets a little at every step. when enough has "
    "come in it fires and starts again. a network of such neurons can remember for a "
    "while: what one of them sends comes back to it through the others. to learn, each "
    "connection keeps a trace of what it did. the trace fades with time. when a signal "
    "tells how well the network did, the trace says how much of it was due to this "
    "connection. nothing has to be replayed, and the past need not be stored. the trace "
    "is enough when every neuron remembers only by itself, and it is a good guess when "
    "they remember together. small steps, taken often, lead far. the rain fell on the "
    "hills and the river carried it to the sea; the sea gave it back to the sky. what "
    "goes around comes around, a little changed each time. ";

}  // namespace

Task integrator_task(const IntegratorOptions& o) {
  require_count("integrator", "steps", o.steps, 1);
  BT_REQUIRE(o.dt > 0 && std::isfinite(o.dt),
             fmt::format("integrator: dt must be positive, got {}", o.dt));
  const std::int64_t T = o.steps;
  const auto generate = [=](RngKey key, Split) {
    Draws draw(key);
    const double bias = o.bias * (draw.uniform() - 0.5),
                 scale = o.noise / std::sqrt(o.dt);
    Task::Sample s{std::vector<float>(T), std::vector<float>(T)};
    double total = 0;
    for (std::int64_t t = 0; t < T; ++t) {
      const double x = bias + scale * draw.normal();
      total += x;
      s.inputs[t] = static_cast<float>(x);
      s.targets[t] = static_cast<float>(total);
    }
    return s;
  };
  return {"integrator", TaskLoss::mse, {T, 1, 1}, mask_from(T, 0), generate, o.task};
}

Task pattern_task(const PatternOptions& o) {
  require_count("pattern", "patterns", o.patterns, 1);
  require_count("pattern", "steps", o.steps, 2);
  require_count("pattern", "cue_steps", o.cue_steps, 1);
  require_count("pattern", "outputs", o.outputs, 1);
  require_count("pattern", "harmonics", o.harmonics, 1);
  const std::int64_t T = o.steps, K = o.patterns, O = o.outputs;
  // The patterns belong to the task, not to a sample.
  Draws draw(fold_in(rng_key(o.task.seed), "patterns"));
  std::vector<float> patterns(K * T * O);
  for (std::int64_t k = 0; k < K * O; ++k) {
    for (std::int64_t h = 1; h <= o.harmonics; ++h) {
      const double amplitude = 0.5 + draw.uniform(), phase = draw.uniform();
      for (std::int64_t t = 0; t < T; ++t) {
        const double turns = static_cast<double>(h * t) / static_cast<double>(T) + phase;
        patterns[(k / O * T + t) * O + k % O] +=
            static_cast<float>(amplitude * std::sin(2 * std::numbers::pi * turns) /
                               static_cast<double>(o.harmonics));
      }
    }
  }
  const auto generate = [=](RngKey key, Split) {
    Draws pick(key);
    const std::int64_t k = pick.below(K);
    Task::Sample s{std::vector<float>(T * K), std::vector<float>(T * O)};
    for (std::int64_t t = 0; t < std::min(o.cue_steps, T); ++t) s.inputs[t * K + k] = 1;
    std::copy_n(&patterns[k * T * O], T * O, s.targets.begin());
    return s;
  };
  return {"pattern", TaskLoss::mse, {T, K, O}, mask_from(T, 0), generate, o.task};
}

Task text_task(const TextOptions& o) {
  const std::string text = o.text.empty() ? std::string(built_in_text) : o.text;
  require_count("text", "steps", o.steps, 1);
  const std::int64_t T = o.steps, cut = static_cast<std::int64_t>(text.size()) * 9 / 10;
  const std::int64_t test_length = static_cast<std::int64_t>(text.size()) - cut;
  BT_REQUIRE(cut > T && test_length > T,
             fmt::format("text: needs more than {} characters for {} steps, got {}",
                         10 * (T + 1), T, text.size()));
  const std::set<char> alphabet(text.begin(), text.end());
  const std::vector<char> letters(alphabet.begin(), alphabet.end());
  std::vector<std::int64_t> codes;
  for (const char c : text)
    codes.push_back(std::lower_bound(letters.begin(), letters.end(), c) -
                    letters.begin());
  const auto F = static_cast<std::int64_t>(letters.size());
  const auto generate = [=](RngKey key, Split split) {
    Draws draw(key);
    const std::int64_t start =
        split == Split::train ? draw.below(cut - T) : cut + draw.below(test_length - T);
    Task::Sample s{std::vector<float>(T * F), std::vector<float>(T)};
    for (std::int64_t t = 0; t < T; ++t) {
      s.inputs[t * F + codes[start + t]] = 1;
      s.targets[t] = static_cast<float>(codes[start + t + 1]);
    }
    return s;
  };
  return {"text", TaskLoss::softmax_xent, {T, F, F}, mask_from(T, 0), generate, o.task};
}

}  // namespace braintrace
