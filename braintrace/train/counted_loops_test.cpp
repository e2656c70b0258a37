// SPDX-License-Identifier: Apache-2.0
// Loops that count to a constant, as scans: reverse mode goes through them.
#include <doctest/doctest.h>

#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace counted_loops_test {

using namespace braintrace;
using braintrace::testing::MicroModel;

namespace {

// Three small steps of a leaky state inside one, written as a loop or one by one.
Value settled(const Value& start, const Value& drive, bool loop) {
  const auto turn = [&](const Value& h) { return 0.8 * h + 0.2 * tanh(drive - h * h); };
  if (!loop) return turn(turn(turn(start)));
  return while_loop([](const Values& c) { return Values{c[0] < 3}; },
                    [&](const Values& c) {
                      return Values{c[0] + 1, turn(c[1])};
                    },
                    {scalar(0, DType::i32), start})[1];
}

StateDict gradients(const Algorithm& rule, bool loop) {
  MicroModel m([loop](MicroModel& s, Value x) {
    s.set("h", settled(s.h(), matmul(x, s.w()), loop));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {3, 4});
  LearnerOptions options{.seed = 5, .dtype = DType::f64};
  options.graph.counted_loops = CountedLoops::scan;
  Learner learner = compile(m, rule, zeros({3}, DType::f64), options);
  const auto loss = [&](const Value& x, const Value& y) { return mse(learner(x), y); };
  return learner
      .etrace_grad(random_normal(rng_key(1), {6, 3}, DType::f64),
                   random_normal(rng_key(2), {6, 4}, DType::f64), loss)
      .grads;
}

}  // namespace

TEST_CASE("a loop that counts to a constant learns as if written out, with every rule") {
  for (const Algorithm& rule : {Algorithm(BPTT{}), Algorithm(D_RTRL{}),
                                Algorithm(ExactRTRL{}), Algorithm(EProp{})}) {
    CAPTURE(rule.name);
    for (const auto& [leaf, g] : gradients(rule, false))
      testing::check_close(leaf, gradients(rule, true).at(leaf), g, tol::f64);
  }
}

}  // namespace counted_loops_test
