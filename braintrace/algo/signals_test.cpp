// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/signals.h"

#include <doctest/doctest.h>

#include "braintrace/testing/close.h"
#include "braintrace/testing/micro_model.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"

namespace signals_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

const Algorithm kRandom = EProp{.feedback = "random", .random_feedback_key = 1};

// One number of state per sample.
struct ScalarUnit : Module {
  ParamState w{Shape{3, 1}, constant_init(0.1)};
  HiddenState h{Shape{}};
  ScalarUnit() {
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    h.set(0.9 * h.value() + squeeze(matmul(x, w.value()), -1));
    return h.value();
  }
};

Array gradient(Learner& l, const Array& xs) {
  return l
      .etrace_grad(xs, xs,
                   [&](const Value& x, const Value&) { return sum(square(l(x))); },
                   {.window = 1, .reduction = Reduction::sum})
      .grads.at("w");
}

}  // namespace

TEST_CASE("random feedback does not mix samples of one number each") {
  ScalarUnit batched;
  const Array xs = random_normal(rng_key(2), {4, 2, 3}, DType::f64);
  Learner l = compile(batched, kRandom, row(xs, 0),
                      {.batch_size = 2, .seed = 3, .dtype = DType::f64});
  CHECK(l.rule().feedback.at(0).shape() == Shape{1, 1});
  Value alone = zeros({3, 1}, DType::f64);
  for (std::int64_t sample : {0, 1}) {
    ScalarUnit one;
    const Array mine =
        squeeze(slice_axis(Value(xs), 1, sample, 1), 1).array().contiguous();
    Learner single =
        compile(one, kRandom, row(mine, 0), {.seed = 3, .dtype = DType::f64});
    alone = alone + Value(gradient(single, mine));
  }
  check_close("w", gradient(l, xs), alone.array(), tol::f64);
}

TEST_CASE("random feedback of one number each outlives another batch size") {
  ScalarUnit m;
  Learner l = compile(m, kRandom, zeros({2, 3}, DType::f64),
                      {.batch_size = 2, .seed = 3, .dtype = DType::f64});
  l.reset_state(5);
  CHECK_NOTHROW(gradient(l, random_normal(rng_key(2), {4, 5, 3}, DType::f64)));
}

}  // namespace signals_test
