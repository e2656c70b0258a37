// SPDX-License-Identifier: Apache-2.0
// A modulator of its own for every step of a sequence.
#include <functional>

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/prepared_grad.h"

namespace modulators_test {

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

  explicit Setup(const Algorithm& a = ThreeFactor{}, bool vmap = false)
      : learner(*model, a, {numbers({2, 3}, 1)},
                {.batch_size = 2, .seed = 3, .dtype = DType::f64, .vmap = vmap}) {}
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

// The published rule by hand: eps_t = 0.9 eps_{t-1} + x_t, gradient m_t eps_t summed over
// samples and steps; `at(t, b, o)` is the modulator.
Array by_hand(const Array& xs, const std::function<double(int, int, int)>& at) {
  std::vector<double> eps(2 * 3, 0), out(3 * 4, 0);
  const std::vector<double> x = xs.to_doubles();
  for (int t = 0; t < kSteps; ++t)
    for (int b = 0; b < 2; ++b)
      for (int i = 0; i < 3; ++i) {
        double& e = eps[b * 3 + i];
        e = 0.9 * e + x[(t * 2 + b) * 3 + i];
        for (int o = 0; o < 4; ++o) out[i * 4 + o] += at(t, b, o) * e;
      }
  return array({3, 4}, out, DType::f64);
}

// One number per step, sample and neuron.
double of_neuron(const Array& m, int t, int b, int o) {
  return m.to_doubles()[(t * 2 + b) * 4 + o];
}

}  // namespace

TEST_CASE("a modulator meets the trace as the closed formula says") {
  const Array m = numbers({kSteps, 2, 4}, 7), one = numbers({kSteps}, 8);
  const Array each =
      by_hand(Setup().xs, [&](int t, int b, int o) { return of_neuron(m, t, b, o); });
  const Array all =
      by_hand(Setup().xs, [&](int t, int, int) { return one.to_doubles()[t]; });
  testing::check_close("options", Setup().grad(m), each, tol::f64);
  testing::check_close("one number", Setup().grad(one), all, tol::f64);

  Setup called;  // the modulator as an argument of the loss
  const TracedFn loss = [&](const Values& in) {
    return LossResult{.loss = mse(called.learner.update(in[0], in[2]), in[1]),
                      .results = {}};
  };
  const GradOptions sum{.reduction = Reduction::sum};
  const Array g =
      called.learner.etrace_grad({called.xs, called.ys, m}, loss, sum).grads.at("w");
  testing::check_close("update(x, modulator)", g, each, tol::f64);
}

TEST_CASE("modulatory rules need no loss") {
  const Array m = numbers({kSteps, 2, 4}, 7);
  Setup s, steps;
  const Array want =
      by_hand(s.xs, [&](int t, int b, int o) { return of_neuron(m, t, b, o); });
  GradOptions o{.reduction = Reduction::sum, .modulators = m};
  testing::check_close("driver", s.learner.etrace_grad({s.xs}, {}, o).grads.at("w"), want,
                       tol::f64);
  Value total = zeros({3, 4}, DType::f64);
  for (std::int64_t t = 0; t < kSteps; ++t) {
    const StepGradient g = steps.learner.modulated_grad({row(steps.xs, t)}, row(m, t));
    CHECK(g.loss == 0);
    CHECK(g.results[0].shape() == Shape{2, 4});
    total = total + g.gradients->at("w");
  }
  testing::check_close("step", total.array(), want, tol::f64);
  CHECK(steps.learner.running_index() == kSteps);
}

TEST_CASE("a modulator of one call is gone afterwards, also after an error") {
  Setup s;
  const Value x = row(s.xs, 0);
  const auto with = [&](const Value& m) {
    return [&s, m](const Values& in) {
      return LossResult{.loss = mse(s.learner.update(in[0], m), in[1]), .results = {}};
    };
  };
  s.learner.update(x, scalar(2.0));  // no gradient: checked, and of no effect
  CHECK_THROWS_WITH_AS(s.learner.update(x, ones({3})),
                       "modulator: shape [3] does not fit group 0 of shape [2,4,1]",
                       UserError);
  CHECK_THROWS_AS(s.learner.etrace_grad({s.xs, s.ys}, with(ones({3}))), UserError);
  CHECK(s.learner.running_index() == 1);
  s.learner.etrace_grad({s.xs, s.ys}, with(scalar(2.0)));
  CHECK_THROWS_AS(s.grad({}), UserError);  // none stands
  CHECK(!s.learner.modulator());
  s.learner.set_modulator(scalar(0.5));
  s.learner.etrace_grad({s.xs, s.ys}, with(scalar(2.0)));
  CHECK(s.learner.modulator()->item() == 0.5);
}

TEST_CASE("a certificate takes losses that give modulators") {
  Setup s;
  const CertificateData c =
      s.learner.certificate(s.xs, s.ys, [&](const Value& x, const Value& y) {
        return mse(s.learner.update(x, scalar(0.5)), y);
      });
  REQUIRE(c.rows.size() == 1);
  CHECK(c.rows[0].because == "the signal is given");
  CHECK(c.rows[0].bptt_norm > 1e-3);
  CHECK(c.rows[0].norm > 1e-3);
}

TEST_CASE("lanes have modulators of their own, behind the lane axis") {
  const Array m = numbers({kSteps, 2, 4}, 7);
  const Array want =
      by_hand(Setup().xs, [&](int t, int b, int o) { return of_neuron(m, t, b, o); });
  Setup s(ThreeFactor{}, true), steps(ThreeFactor{}, true);
  testing::check_close("driver", s.grad(m), want, tol::f64);
  testing::check_close("by step", steps.grad_by_step(m), want, tol::f64);
  CHECK_THROWS_WITH_AS(
      s.learner.set_modulator(ones({4})),
      "set_modulator: a modulator needs a leading axis of 2 lanes, got shape [4]",
      UserError);
}

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

TEST_CASE("a prepared gradient takes other modulators, of another shape, too") {
  Setup one, other;
  PreparedGrad prepared =
      other.learner.prepare(other.loss(), {other.xs, other.ys},
                            {.reduction = Reduction::sum, .modulators = ones({kSteps})});
  for (const Shape& shape : {Shape{kSteps}, {kSteps, 2, 4}, {kSteps}}) {
    const Array m = numbers(shape, 7);
    prepared.set_modulators(m);
    CHECK(prepared.grad({other.xs, other.ys}).grads.at("w") == one.grad(m));
  }
  CHECK_THROWS_AS(prepared.set_modulators(ones({3})), UserError);
}

TEST_CASE("modulators given twice are refused, and so is a gradient of nothing") {
  Setup s;
  const TracedFn own = [&](const Values& in) {
    return LossResult{.loss = mse(s.learner.update(in[0], scalar(1.0)), in[1]),
                      .results = {}};
  };
  CHECK_THROWS_WITH_AS(
      s.learner.etrace_grad({s.xs, s.ys}, own, {.modulators = ones({kSteps})}),
      "etrace_grad: modulators are given twice, by the options and by the function's own "
      "call of the learner",
      UserError);
  CHECK_THROWS_WITH_AS(s.learner.etrace_grad({s.xs}, {}),
                       "etrace_grad: without a loss modulators must be given", UserError);
}

TEST_CASE("modulators are checked before anything runs") {
  Setup s, plain(D_RTRL{});
  CHECK_THROWS_WITH_AS(
      s.grad(numbers({4}, 7)),
      "etrace_grad: modulators need a leading axis of 5 steps, got shape [4]", UserError);
  CHECK_THROWS_WITH_AS(plain.grad(numbers({kSteps}, 7)),
                       "etrace_grad: D_RTRL has no modulatory signal", UserError);
  CHECK_THROWS_WITH_AS(plain.learner.update(row(s.xs, 0), scalar(1.0)),
                       "learner: D_RTRL has no modulatory signal", UserError);
  CHECK_THROWS_WITH_AS(plain.learner.modulated_grad({row(s.xs, 0)}, scalar(1.0)),
                       "modulated_grad: D_RTRL has no modulatory signal", UserError);
  CHECK(s.learner.running_index() == 0);
}

}  // namespace modulators_test
