// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/learner.h"

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/bptt.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/finite_differences.h"
#include "braintrace/train/losses.h"

namespace learner_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr const char* kLeaky =
    R"({"model": {"kind": "leaky_linear", "n_in": 3, "n_rec": 4, "leak": 0.9}})";

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

struct Setup {
  std::unique_ptr<Module> model = nn::build_model(kLeaky);
  Learner learner = compile(*model, D_RTRL{}, numbers({3}, 1), {.dtype = DType::f64});
  Array xs = numbers({6, 3}, 2), ys = numbers({6, 4}, 3);
  Value loss(const Value& x, const Value& y) { return mse(learner(x), y); }
};

}  // namespace

TEST_CASE("D_RTRL equals back-propagation through time on a diagonal recurrence") {
  Setup s;
  const BpttResult want =
      bptt(*s.model, steps_of(s.xs), [&](std::size_t t, const Values& y) {
        return mse(y[0], row(s.ys, static_cast<std::int64_t>(t)));
      });
  const GradResult got = s.learner.etrace_grad(
      s.xs, s.ys, [&](const Value& x, const Value& y) { return s.loss(x, y); },
      {.reduction = Reduction::sum});
  for (const auto& [leaf, g] : want.grads)
    check_close(leaf, got.grads.at(leaf), g, 1e-10);
  double live = 0;
  for (double v : want.grads.begin()->second.to_doubles()) live += std::abs(v);
  CHECK(live > 1e-3);
  CHECK(s.learner.running_index() == 6);
}

TEST_CASE("a learner names the states of its step by kind") {
  const auto model = nn::build_model("single_rnn");
  const Learner l = compile(*model, D_RTRL{}, zeros({10}));
  const auto paths = [](const std::vector<NamedState>& states) {
    std::vector<Path> out;
    for (const NamedState& s : states) out.push_back(s.path);
    return out;
  };
  CHECK(paths(l.param_states()) ==
        std::vector<Path>{Path{"out", "weight"}, Path{"rnn", "W", "weight"}});
  CHECK(paths(l.hidden_states()) == std::vector<Path>{Path{"rnn", "h"}});
  CHECK(l.other_states().empty());
  CHECK(l.path_to_states().size() == 3);
  CHECK(l.config() == ETraceConfig());
}

TEST_CASE("a loss may compute before it calls the learner") {
  Setup plain, scaled;
  const GradResult want = plain.learner.etrace_grad(
      (Value(plain.xs) * 2).array(), plain.ys,
      [&](const Value& x, const Value& y) { return plain.loss(x, y); });
  const GradResult got = scaled.learner.etrace_grad(
      scaled.xs, scaled.ys,
      [&](const Value& x, const Value& y) { return scaled.loss(x * 2, y); });
  check_close("w", got.grads.at("w"), want.grads.at("w"), 1e-12);
}

TEST_CASE("a loss that calls the learner twice or never is refused") {
  Setup s;
  const auto twice = [&](const Value& x, const Value& y) {
    return s.loss(x, y) + s.loss(x, y);
  };
  const auto never = [&](const Value& x, const Value&) { return sum(x); };
  CHECK_THROWS_WITH_AS(s.learner.etrace_grad(s.xs, s.ys, twice),
                       doctest::Contains("called the learner twice"), UserError);
  CHECK_THROWS_WITH_AS(s.learner.etrace_grad(s.xs, s.ys, never),
                       doctest::Contains("exactly once"), UserError);
  CHECK(s.learner.running_index() == 0);
}

TEST_CASE("deep history is refused under vmap, not ignored") {
  const auto model = nn::build_model(kLeaky);
  LearnerOptions options{.batch_size = 2, .dtype = DType::f64, .vmap = true};
  options.learning.history = History::deep;
  CHECK_THROWS_WITH_AS(compile(*model, D_RTRL{}, numbers({2, 3}, 1), options),
                       doctest::Contains("none under vmap"), UserError);
}

TEST_CASE("a source is asked once for every step, whatever the window") {
  for (std::int64_t window : {0, 1, 2, 4}) {
    Setup s;
    std::vector<std::int64_t> asked;
    const SequenceSource source{.length = 6, .at = [&](std::int64_t t) {
                                  asked.push_back(t);
                                  return std::vector{row(s.xs, t), row(s.ys, t)};
                                }};
    const auto loss = [&](const Values& in) {
      return LossResult{.loss = s.loss(in[0], in[1]), .results = {}};
    };
    const GradResult got = s.learner.etrace_grad(source, loss, {.window = window});
    CHECK(got.steps == 6);
    CHECK(asked == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  }
}

TEST_CASE("a modulator per sample is repeated over the units of the sample") {
  // As many samples as units: the last axis could be taken for either.
  for (const std::int64_t samples : {3, 4}) {
    CAPTURE(samples);
    const auto gradient = [&](const Array& modulator) {
      const auto model = nn::build_model(kLeaky);
      Learner learner = compile(*model, ThreeFactor{}, zeros({samples, 3}, DType::f64),
                                {.batch_size = samples, .seed = 1, .dtype = DType::f64});
      learner.set_modulator(modulator);
      const Array xs = numbers({5, samples, 3}, 2);
      return learner
          .etrace_grad(std::vector{xs},
                       [&](const Values& in) {
                         return LossResult{.loss = sum(learner(in[0])), .results = {}};
                       })
          .grads.at("w");
    };
    const Value each = numbers({samples, 1}, 3);
    const Array want = gradient(broadcast_to(each, {samples, 4}).array());
    CHECK(gradient(each.array()).to_doubles() == want.to_doubles());
    CHECK(std::abs(want.at(0)) > 0);
  }
}

}  // namespace learner_test
