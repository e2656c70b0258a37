// SPDX-License-Identifier: Apache-2.0
// Loops that count to a constant are scans: reverse mode goes through them.
#include <doctest/doctest.h>

#include "braintrace/base/certificate.h"
#include "braintrace/testing/bptt.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace counted_loops_test {

using namespace braintrace;
using braintrace::testing::MicroModel;

namespace {

using Turn = std::function<Value(const Value&)>;

// So many turns as a loop or one by one.
Value turned(const Value& start, int turns, bool loop, const Turn& turn) {
  if (!loop) {
    Value v = start;
    for (int i = 0; i < turns; ++i) v = turn(v);
    return v;
  }
  return while_loop([&](const Values& c) { return Values{c[0] < turns}; },
                    [&](const Values& c) {
                      return Values{c[0] + 1, turn(c[1])};
                    },
                    {scalar(0, DType::i32), start})[1];
}

// Small steps of a leaky state inside one.
struct Settling : MicroModel {
  Settling(int turns, bool loop)
      : MicroModel([=](MicroModel& s, const Value& x) {
          const Value drive = matmul(x, s.w());
          s.set("h", turned(s.h(), turns, loop, [&](const Value& h) {
                  return 0.8 * h + 0.2 * tanh(drive - h * h);
                }));
          return s.h();
        }) {
    hidden("h", {4}).param("w", {3, 4});
  }
};

struct Trial {
  MicroModel& model;
  Learner learner;
  Array xs = random_normal(rng_key(1), {6, 3}, DType::f64);
  Array ys = random_normal(rng_key(2), {6, 4}, DType::f64);

  Trial(MicroModel& m, const Algorithm& rule, const CompileOptions& graph = {})
      : model(m),
        learner(m, rule, {zeros({3}, DType::f64)},
                {.seed = 5, .dtype = DType::f64, .graph = graph}) {}
  Value loss(const Value& x, const Value& y) { return mse(learner(x), y); }
  StateDict gradients(const Turn& last = {}) {
    return learner
        .etrace_grad(xs, ys,
                     [&](const Value& x, const Value& y) {
                       return last ? last(loss(x, y)) : loss(x, y);
                     },
                     {.reduction = Reduction::sum})
        .grads;
  }
};

const Algorithm kRules[] = {BPTT{}, D_RTRL{}, ExactRTRL{}, EProp{}};

}  // namespace

TEST_CASE("a loop that counts to a constant learns as if written out, with every rule") {
  for (const Algorithm& rule : kRules)
    for (const int turns : {0, 1, 3, 20}) {
      CAPTURE(rule.name);
      CAPTURE(turns);
      if (turns == 0 && rule.engine != Engine::bptt) continue;  // no credit passes
      Settling loop(turns, true), out(turns, false);
      const StateDict got = Trial(loop, rule).gradients();
      for (const auto& [leaf, g] : Trial(out, rule).gradients())
        testing::check_close(leaf, got.at(leaf), g, tol::f64);
    }
}

TEST_CASE("the oracle and certificates go back through a counted loop") {
  Settling loop(3, true);
  Trial t(loop, D_RTRL{});
  const CertificateData c = t.learner.certificate(
      t.xs, t.ys, [&](const Value& x, const Value& y) { return t.loss(x, y); });
  REQUIRE(c.rows.size() == 1);
  CHECK(c.rows[0].verdict == "exact");
  CHECK(c.rows[0].bptt_norm > 0);
  CHECK(c.holds(tol::f64));
  const auto want =
      testing::bptt(loop, testing::steps_of(t.xs), [&](std::size_t i, const Values& y) {
        return mse(y[0], row(t.ys, static_cast<std::int64_t>(i)));
      });
  testing::check_close("w", t.gradients().at("w"), want.grads.at("w"), tol::f64);
}

TEST_CASE("loops of a loss are counted, too, unless they are to be kept") {
  const auto halved = [](bool loop) {
    return [loop](const Value& loss) {
      return turned(loss, 3, loop, [](const Value& v) { return 0.5 * tanh(v); });
    };
  };
  Settling model(3, false);
  for (const Algorithm& rule : kRules) {
    CAPTURE(rule.name);
    const StateDict want = Trial(model, rule).gradients(halved(false));
    const StateDict got = Trial(model, rule).gradients(halved(true));
    testing::check_close("w", got.at("w"), want.at("w"), tol::f64);
    Trial kept(model, rule, {.counted_loops = CountedLoops::keep});
    CHECK_THROWS_AS(kept.gradients(halved(true)), UserError);
  }
}

}  // namespace counted_loops_test
