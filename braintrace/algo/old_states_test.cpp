// SPDX-License-Identifier: Apache-2.0
// Losses that read the state from before the step, on one unit, by hand:
// h_t = 0.5 h_{t-1} + w x_t, loss_t = c_t h_{t-1}.
#include "braintrace/algo/old_states.h"

#include <cmath>

#include <doctest/doctest.h>

#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"

namespace old_states_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr double a = 0.5;
const std::vector<double> x = {1, -2, 3, 0.5}, c = {0.7, 1, -1, 2};
const auto T = static_cast<std::int64_t>(x.size());

// The gradient of w, the state read by the loss function itself.
double gradient(const Algorithm& rule, std::int64_t window, LearnerOptions options = {}) {
  MicroModel m([](MicroModel& s, Value in) {
    s.set("h", a * s.h() + matmul(in, s.w()));
    return s.h();
  });
  m.hidden("h", {1}).param("w", {1, 1});
  options.dtype = DType::f64;
  const Array xs = array({T, 1}, x, DType::f64), cs = array({T, 1}, c, DType::f64);
  Learner l = compile(m, rule, row(xs, 0), options);
  if (rule.config.learning_signal() == LearningSignal::modulatory)
    l.set_modulator(scalar(1, DType::f64));
  const auto loss = [&](const Value& in, const Value& weight) {
    const Value old = m.h();
    l(in);
    return sum(weight * old);
  };
  return l.etrace_grad(xs, cs, loss, {.window = window, .reduction = Reduction::sum})
      .grads.at("w")
      .at(0);
}

// sum_t c_t trace_{t-1}, for a trace that is zero before the first step.
template <class Roll>
double met(const Roll& roll) {
  double total = 0, trace = 0;
  for (std::size_t t = 0; t < x.size(); ++t) {
    total += c[t] * trace;
    trace = roll(t);
  }
  return total;
}

void check_all_windows(const Algorithm& rule, double want) {
  CAPTURE(rule.name);
  REQUIRE(want != 0);
  for (std::int64_t window : {1, 2, 3, 4}) {
    CAPTURE(window);
    CHECK(gradient(rule, window) == doctest::Approx(want).epsilon(tol::f64_golden));
  }
}

}  // namespace

TEST_CASE("a loss of the old state meets the trace from before the step") {
  double eps = 0;
  const double want = met([&](std::size_t t) { return eps = a * eps + x[t]; });
  for (const Algorithm& rule :
       {Algorithm(D_RTRL{}), Algorithm(OSTLRecurrent{}), Algorithm(EProp{}),
        Algorithm(SnAp{.n = 2}), Algorithm(ExactRTRL{})})
    check_all_windows(rule, want);
  CHECK(gradient(BPTT{}, 4) == doctest::Approx(want));
}

TEST_CASE("the old state meets the filtered trace from before the step") {
  const double kappa = 0.7;
  double eps = 0, filtered = 0;
  const double want = met([&](std::size_t t) {
    eps = a * eps + x[t];
    return filtered = kappa * filtered + eps;
  });
  check_all_windows(EProp{.kappa_filter_decay = kappa}, want);
}

TEST_CASE("a filter that moves with gradients moves once per step") {
  const double kappa = 0.7;
  double eps = 0, filtered = 0;
  const double want = met([&](std::size_t t) {
    eps = a * eps + x[t];
    return filtered = kappa * filtered + eps;
  });
  LearnerOptions o;
  o.learning.kappa_advance = KappaAdvance::on_gradient;
  o.learning.newest = Newest::trace;
  CHECK(gradient(EProp{.kappa_filter_decay = kappa}, 1, o) == doctest::Approx(want));
}

TEST_CASE("the old state meets both factors from before the step") {
  const double decay = 0.8;
  double f = 0, filtered = 0;
  const double want = met([&](std::size_t t) {
    f = decay * a * f + (1 - decay);
    filtered = decay * filtered + x[t];
    return f * filtered / (1 - std::pow(decay, static_cast<double>(t + 1)));
  });
  check_all_windows(pp_prop{.decay_or_rank = decay}, want);
}

TEST_CASE("a random matrix stands between the old state and its trace as well") {
  const EProp rule{.feedback = "random", .random_feedback_key = 5};
  const double sent = gradient(rule, 1);
  double eps = 0, by_sign = 0;
  for (std::size_t t = 0; t < x.size(); ++t) {
    by_sign += (c[t] > 0 ? 1 : -1) * eps;
    eps = a * eps + x[t];
  }
  MicroModel m([](MicroModel& s, Value in) {
    s.set("h", a * s.h() + matmul(in, s.w()));
    return s.h();
  });
  m.hidden("h", {1}).param("w", {1, 1});
  const Learner l = compile(m, rule, zeros({1}, DType::f64), {.dtype = DType::f64});
  const double b = l.rule().feedback.at(0).at(0);
  CHECK(sent == doctest::Approx(b * by_sign).epsilon(1e-6));
  CHECK(gradient(rule, 3) == doctest::Approx(sent));
}

TEST_CASE("a modulator stands for every signal: the old state adds nothing") {
  double eps = 0, want = 0;
  for (double v : x) want += eps = a * eps + v;
  CHECK(gradient(ThreeFactor{}, 1) == doctest::Approx(want));
}

}  // namespace old_states_test
