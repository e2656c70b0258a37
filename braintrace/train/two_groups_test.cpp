// SPDX-License-Identifier: Apache-2.0
// One op that moves two groups: each has a tail, a transition and a trace of its own.
#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace two_groups_test {

using namespace braintrace;

namespace {

// Two ways to remember one product, apart from each other.
struct Forked : nn::Module {
  nn::Linear in{3, 4};
  HiddenState slow{Shape{4}}, fast{Shape{4}};
  Forked() {
    add("in", in);
    add("slow", slow);
    add("fast", fast);
  }
  Value update(Value x) override {
    const Value y = in(x);
    slow.set(0.9 * slow.value() + tanh(y));
    fast.set(0.3 * fast.value() + 2 * sin(y));
    return slow.value() * fast.value();
  }
};

StateDict forked_gradients(const Algorithm& rule, std::int64_t window,
                           std::size_t* groups = nullptr) {
  Forked model;
  Learner learner = compile(model, rule, zeros({2, 3}, DType::f64),
                            {.batch_size = 2, .seed = 5, .dtype = DType::f64});
  if (groups) *groups = learner.graph().hidden_groups.size();
  const Array xs = random_normal(rng_key(1), {6, 2, 3}, DType::f64);
  const Array ys = random_normal(rng_key(2), {6, 2, 4}, DType::f64);
  const auto loss = [&](const Value& x, const Value& y) { return mse(learner(x), y); };
  return learner.etrace_grad(xs, ys, loss, {.window = window}).grads;
}

}  // namespace

TEST_CASE("a weight that moves two groups learns through the tail of each") {
  std::size_t groups = 0;
  const StateDict exact = forked_gradients(BPTT{}, 0);
  for (const Algorithm& rule : {Algorithm(D_RTRL{}), Algorithm(OSTLRecurrent{}),
                                Algorithm(SnAp{.n = 2}), Algorithm(ExactRTRL{})})
    for (const std::int64_t window : {1, 0, 4}) {
      CAPTURE(rule.name);
      CAPTURE(window);
      const StateDict online = forked_gradients(rule, window, &groups);
      CHECK(groups == 2);
      for (const auto& [leaf, g] : exact)
        testing::check_close(leaf, online.at(leaf), g, tol::f64);
    }
}

}  // namespace two_groups_test
