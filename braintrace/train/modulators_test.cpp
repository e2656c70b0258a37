// SPDX-License-Identifier: Apache-2.0
// A modulator of its own for every step of a sequence.
#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/prepared_grad.h"

using namespace braintrace;

namespace {

constexpr std::int64_t kSteps = 5;

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

// A learner of two samples, always with the same weights.
struct Setup {
  std::unique_ptr<Module> model = nn::build_model(
      R"({"model": {"kind": "leaky_linear", "n_in": 3, "n_rec": 4, "leak": 0.9}})");
  Learner learner;
  Array xs = numbers({kSteps, 2, 3}, 2), ys = numbers({kSteps, 2, 4}, 3);

  explicit Setup(const Algorithm& a = ThreeFactor{})
      : learner(*model, a, {numbers({2, 3}, 1)},
                {.batch_size = 2, .seed = 3, .dtype = DType::f64}) {}
  TracedFn loss() {
    return [this](const Values& in) {
      return LossResult{.loss = mse(learner(in[0]), in[1]), .results = {}};
    };
  }
  Array grad(const std::optional<Array>& modulators) {
    return learner
        .etrace_grad({xs, ys}, loss(),
                     {.reduction = Reduction::sum, .modulators = modulators})
        .grads.at("w");
  }
  // The same, with set_modulator before every step.
  Array grad_by_step(const Array& modulators) {
    Value sum = zeros({3, 4}, DType::f64);
    for (std::int64_t t = 0; t < kSteps; ++t) {
      learner.set_modulator(row(modulators, t));
      LossHandle h = learner.trace_loss(loss(), {row(xs, t), row(ys, t)});
      sum = sum + learner.step_grad({row(xs, t), row(ys, t)}, h).gradients->at("w");
    }
    return sum.array();
  }
};

}  // namespace

TEST_CASE("every step of a sequence may have a modulator of its own") {
  for (const Shape& shape : {Shape{kSteps}, {kSteps, 2, 1}, {kSteps, 2, 4}}) {
    CAPTURE(to_string(shape));
    const Array m = numbers(shape, 7);
    Setup whole, stepwise;
    testing::check_close("w", whole.grad(m), stepwise.grad_by_step(m), tol::f64);
  }
}

TEST_CASE("modulators are given for one call, and the standing one stays") {
  Setup s, never;
  CHECK_THROWS_AS(s.grad({}), UserError);
  s.grad(numbers({kSteps}, 7));
  CHECK_THROWS_AS(s.grad({}), UserError);  // none stood before
  never.grad(numbers({kSteps}, 7));
  for (Setup* each : {&s, &never}) each->learner.set_modulator(scalar(0.5));
  CHECK_THROWS_AS(s.grad(numbers({kSteps, 3}, 7)), UserError);
  CHECK(s.grad({}) == never.grad({}));
}

TEST_CASE("modulators of a shape that was there before need no new program") {
  Setup s;
  s.grad(numbers({kSteps}, 7));
  const StepProgram* program = s.learner.last_program();
  s.grad(numbers({kSteps, 2, 1}, 8));
  CHECK(s.learner.last_program() != program);
  s.grad(numbers({kSteps}, 9));
  CHECK(s.learner.last_program() == program);
}

TEST_CASE("a prepared gradient keeps the modulators it was prepared with") {
  Setup one, other;
  const Array m = numbers({kSteps}, 7);
  PreparedGrad prepared = other.learner.prepare(
      other.loss(), {other.xs, other.ys}, {.reduction = Reduction::sum, .modulators = m});
  for (int call = 0; call < 2; ++call)
    CHECK(prepared.grad({other.xs, other.ys}).grads.at("w") == one.grad(m));
}

TEST_CASE("modulators are checked before anything runs") {
  Setup s, plain(D_RTRL{});
  CHECK_THROWS_WITH_AS(
      s.grad(numbers({4}, 7)),
      "etrace_grad: modulators need a leading axis of 5 steps, got shape [4]", UserError);
  CHECK_THROWS_WITH_AS(plain.grad(numbers({kSteps}, 7)),
                       "etrace_grad: D_RTRL has no modulatory signal", UserError);
  CHECK(s.learner.running_index() == 0);
}
