// SPDX-License-Identifier: Apache-2.0
// The trace filter of EProp under windows of two steps, on one unit, by hand:
// h_t = 0.5 h_{t-1} + w x_t, loss_t = c_t h_t.
#include <doctest/doctest.h>

#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"

namespace eprop_window_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr double a = 0.5, kappa = 0.7;
const std::vector<double> x = {1, -2, 3, 0.5, -1, 2}, c = {0.7, 1, -1, 2, 0.4, 1.5};

double learned(VjpMethod method, KappaAdvance advance, Newest newest) {
  MicroModel m([](MicroModel& s, Value in) {
    s.set("h", a * s.h() + matmul(in, s.w()));
    return s.h();
  });
  m.hidden("h", {1}).param("w", {1, 1});
  const auto n = static_cast<std::int64_t>(x.size());
  const Array xs = array({n, 1}, x, DType::f64), cs = array({n, 1}, c, DType::f64);
  LearnerOptions o{.dtype = DType::f64};
  o.learning.kappa_advance = advance;
  o.learning.newest = newest;
  const EProp rule{.kappa_filter_decay = kappa, .vjp_method = method};
  Learner l = compile(m, rule, row(xs, 0), o);
  const bool windows = method == VjpMethod::multi_step;
  const auto loss = [&](const Value& in, const Value& weight) {
    const Value y = windows ? l(MultiStepData{{in}})[0] : l(in);
    return sum(weight * y, windows ? ReduceOptions{.axes = {1}} : ReduceOptions{});
  };
  GradOptions g{.reduction = Reduction::sum};
  if (windows) g.chunk_size = 2;
  return l.etrace_grad(xs, cs, loss, g).grads.at("w").at(0);
}

// Exact inside each window of two; credit at its entry meets F. `on_call`: F takes the
// trace at entry once per window, instead of the trace of every step.
double by_hand(bool on_call) {
  double total = 0, eps = 0, filtered = 0;
  for (std::size_t t = 0; t < x.size(); t += 2) {
    if (on_call) filtered = kappa * filtered + eps;
    const double entry = c[t] * a + c[t + 1] * a * a;
    total += c[t] * x[t] + c[t + 1] * (a * x[t] + x[t + 1]) + entry * filtered;
    for (std::size_t k = t; k < t + 2; ++k) {
      eps = a * eps + x[k];
      if (!on_call) filtered = kappa * filtered + eps;
    }
  }
  return total;
}

}  // namespace

TEST_CASE("credit at the entry of a window meets the filter of all steps before it") {
  const double want = by_hand(false);
  CHECK(learned(VjpMethod::multi_step, KappaAdvance::every_step, Newest::exact) ==
        doctest::Approx(want).epsilon(tol::f64_golden));
}

TEST_CASE("a filter that moves with gradients takes one trace per window") {
  const double want = by_hand(true);
  CHECK(learned(VjpMethod::multi_step, KappaAdvance::on_gradient, Newest::exact) ==
        doctest::Approx(want).epsilon(tol::f64_golden));
  CHECK(want != doctest::Approx(by_hand(false)).epsilon(1e-3));
}

TEST_CASE("step by step both ways of moving the filter agree") {
  double want = 0, eps = 0, filtered = 0;
  for (std::size_t t = 0; t < x.size(); ++t) {
    eps = a * eps + x[t];
    filtered = kappa * filtered + eps;
    want += c[t] * filtered;
  }
  for (KappaAdvance advance : {KappaAdvance::every_step, KappaAdvance::on_gradient})
    CHECK(learned(VjpMethod::single_step, advance, Newest::trace) ==
          doctest::Approx(want).epsilon(tol::f64_golden));
}

}  // namespace eprop_window_test
