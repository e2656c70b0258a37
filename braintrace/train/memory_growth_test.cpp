// SPDX-License-Identifier: Apache-2.0
// Learning online takes as much memory for a long sequence as for a short one.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <malloc.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/peak_memory.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace memory_growth_test {

using namespace braintrace;
using testing::peak_bytes;
using testing::reset_peak;

namespace {

constexpr std::int64_t kShort = 100, kLong = 100'000;
constexpr double kAllowedBytes = 2 << 20;

// What is allocated now, and what the heap keeps for later: pages of that become resident
// by use alone, so the resident size says nothing where others left much of it.
double live_bytes() {
  const struct mallinfo2 m = mallinfo2();
  return static_cast<double>(m.uordblks + m.hblkhd);
}
double spare_bytes() { return static_cast<double>(mallinfo2().fordblks); }

struct Peak {
  double live = 0, resident = 0;
};

struct Case {
  std::string name;
  Algorithm algorithm;
};

// A sequence of any length out of one array. Looks at the heap on the way.
SequenceSource source(std::int64_t length, double& live) {
  const Array x = random_normal(rng_key(1), {64, 2}, DType::f32);
  const Array y = zeros({3});
  return {.length = length, .at = [x, y, &live](std::int64_t t) {
            if (t % 16 == 0) live = std::max(live, live_bytes());
            return std::vector{row(x, t % 64), y};
          }};
}

double learn(Learner& l, std::int64_t length) {
  double last = 0, live = 0;
  l.etrace_grad(source(length, live),
                [&](const Values& in) {
                  return LossResult{.loss = mse(l(in[0]), in[1]), .results = {}};
                },
                {.window_bytes = 1 << 18,
                 .loss_sink = [&](std::int64_t, double loss) { last = loss; }});
  CHECK(last > 0);
  return live;
}

// The peaks of a learner's life.
Peak learned(const Case& c, std::int64_t length) {
  malloc_trim(0);
  reset_peak();
  const double before = live_bytes();
  const auto model =
      nn::build_model(R"({"model": {"kind": "tanh_rnn", "n_in": 2, "n_rec": 3}})");
  Learner l = compile(*model, c.algorithm, zeros({2}), {.seed = 1});
  const LearningSignal signal = c.algorithm.config.learning_signal();
  if (signal == LearningSignal::modulatory) l.set_modulator(scalar(0.5));
  if (signal == LearningSignal::bootstrapped)
    l.set_synthesizer(SyntheticGradient({{0, {3, 1}}}));
  const double live = learn(l, length) - before;
  CHECK(l.trace_steps() == length);
  return {live, *peak_bytes()};
}

}  // namespace

TEST_CASE("memory does not grow with the sequence under any online rule") {
  // One of every engine, signal and window form.
  const Case cases[] = {
      {"D_RTRL", D_RTRL{}},
      {"pp_prop", pp_prop{.decay_or_rank = 0.9}},
      {"EProp", EProp{.kappa_filter_decay = 0.8}},
      {"random feedback", EProp{.feedback = "random", .random_feedback_key = 1}},
      {"OSTLRecurrent", OSTLRecurrent{}},
      {"OSTLFeedforward", OSTLFeedforward{}},
      {"SnAp", SnAp{.n = 2}},
      {"UORO", UORO{}},
      {"ThreeFactor", ThreeFactor{}},
      {"DNI", DNI{}},
      {"Hybrid", Hybrid{.decay_or_rank = 0.9}},
      {"ExactRTRL", ExactRTRL{}},
  };
  if (!reset_peak() || !peak_bytes()) return;  // not told here
  for (const Case& c : cases) {
    CAPTURE(c.name);
    learned(c, kShort);  // what a first run allocates once and for all
    const bool alone = spare_bytes() < kAllowedBytes;
    const Peak small = learned(c, kShort), large = learned(c, kLong);
    CHECK(small.live > 0);
    CHECK(large.live - small.live < kAllowedBytes);
    if (alone) CHECK(large.resident - small.resident < kAllowedBytes);
  }
}

TEST_CASE("the measure of memory sees an array that grows") {
  if (!reset_peak() || !peak_bytes()) return;
  const double before = *peak_bytes(), live = live_bytes();
  const Array big = full({4, 1 << 20}, 1.0, DType::f32);
  CHECK(live_bytes() - live > kAllowedBytes);
  if (spare_bytes() < kAllowedBytes) CHECK(*peak_bytes() - before > kAllowedBytes);
  CHECK(big.at(0) == 1);
}

}  // namespace memory_growth_test
