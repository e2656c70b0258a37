// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/synthetic_training.h"

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"

namespace synthetic_training_test {

using namespace braintrace;

namespace {

constexpr const char* kLeaky =
    R"({"model": {"kind": "leaky_linear", "n_in": 3, "n_rec": 4, "leak": 0.8}})";

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

struct Setup {
  std::unique_ptr<Module> model = nn::build_model(kLeaky);
  Learner learner =
      compile(*model, DNI{}, numbers({3}, 1), {.seed = 5, .dtype = DType::f64});
  Array xs = numbers({6, 3}, 2);
  Setup() { learner.set_synthesizer(SyntheticGradient({{0, {4, 1}}})); }
};

// States of h' = 0.8 h + x w from zero.
std::vector<Array> states(const Setup& s) {
  const Value w = state_dict(*s.model).at("w");
  std::vector<Array> h = {zeros({4}, DType::f64)};
  for (std::int64_t t = 0; t < 6; ++t)
    h.push_back((0.8 * Value(h.back()) + dot(row(s.xs, t), w)).array());
  return h;
}

double mean_square(const Array& a, double factor) {
  double total = 0;
  for (double v : a.to_doubles()) total += factor * factor * v * v;
  return total / static_cast<double>(a.size());
}

}  // namespace

TEST_CASE("the predictor is fitted to what a window sends to its entry") {
  // Before it has learned anything the prediction is zero, and a step of the sum of
  // squares sends 2 * 0.8 h' to its entry; nothing is sent to the end of the sequence.
  Setup s;
  const std::vector<Array> h = states(s);
  double want = 0;
  for (std::size_t t = 1; t <= 6; ++t) want += mean_square(h[t], 1.6);
  const auto still = UpdateRule(SGD{.lr = 0});
  const std::vector<double> got =
      train_synthetic_gradient(s.learner, {s.xs}, {.optimizer = still});
  REQUIRE(got.size() == 1);
  CHECK(got[0] == doctest::Approx(want / 7).epsilon(1e-5));
  CHECK(s.learner.trace_steps() == 6);
}

TEST_CASE("a window sends its whole loss, and the prediction at its end") {
  Setup s;
  SyntheticGradient known({{0, {4, 1}}});
  known.set_parameters(0, {zeros({4, 4}), ones({4})});
  s.learner.set_synthesizer(known);
  const std::vector<Array> h = states(s);
  double want = 0;
  for (std::size_t t = 0; t < 6; t += 2) {
    double total = 0;
    for (std::size_t p = 0; p < 4; ++p) {
      const double first = h[t + 1].to_doubles()[p], second = h[t + 2].to_doubles()[p];
      const double target = 1.6 * first + 0.64 * (2 * second + 1);
      total += (target - 1) * (target - 1);
    }
    want += total / 4;
  }
  want += 1;  // at the end: predicted 1, sent 0
  const std::vector<double> got = train_synthetic_gradient(
      s.learner, {s.xs}, {.chunk_size = 2, .optimizer = SGD{.lr = 0}});
  CHECK(got[0] == doctest::Approx(want / 4).epsilon(1e-5));
}

TEST_CASE("training lowers the error, moves the predictor and leaves the model alone") {
  // The same input at every step: what comes back can be told from the state.
  Setup s;
  const StateDict before = state_dict(*s.model);
  const std::vector<double> history =
      train_synthetic_gradient(s.learner, {ones({6, 3}, DType::f64)},
                               {.loss = [](const Values& y) { return sum(y[0]); },
                                .optimizer = Adam{.lr = 0.05},
                                .epochs = 100});
  REQUIRE(history.size() == 100);
  CHECK(history.back() < 0.5 * history.front());
  CHECK(state_dict(*s.model).at("w").to_doubles() == before.at("w").to_doubles());
  double moved = 0;
  for (double v : s.learner.rule().synthesizer->parameters(0).w.to_doubles())
    moved += std::abs(v);
  CHECK(moved > 0.1);
}

TEST_CASE("train_synthetic_gradient refuses what it cannot train on") {
  Setup s;
  const auto run = [&](SyntheticTrainingOptions o) {
    train_synthetic_gradient(s.learner, {s.xs}, o);
  };
  CHECK_THROWS_WITH_AS(run({.chunk_size = 4}),
                       doctest::Contains("chunk_size 4 does not divide the length 6"),
                       UserError);
  CHECK_THROWS_WITH_AS(run({.chunk_size = 0}), doctest::Contains("must be >= 1, got 0"),
                       UserError);
  CHECK_THROWS_WITH_AS(run({.epochs = 0}), doctest::Contains("epochs must be >= 1"),
                       UserError);
  CHECK_THROWS_WITH_AS(run({.loss = [](const Values& y) { return y[0]; }}),
                       doctest::Contains("the loss must be a float scalar"), UserError);
  CHECK_THROWS_WITH_AS(train_synthetic_gradient(s.learner, {s.xs, numbers({5, 3}, 1)}),
                       doctest::Contains("must have one length, got 6 and 5"), UserError);
  const auto model = nn::build_model(kLeaky);
  Learner plain = compile(*model, D_RTRL{}, numbers({3}, 1));
  CHECK_THROWS_WITH_AS(train_synthetic_gradient(plain, {s.xs}),
                       doctest::Contains("D_RTRL has no synthesizer"), UserError);
}

}  // namespace synthetic_training_test
