// SPDX-License-Identifier: Apache-2.0
// Programs that were traced before are used for the same loss alone.
#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"

namespace loss_cache_test {

using namespace braintrace;

namespace {

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

// Two readouts of one shape, for losses that differ in nothing else.
struct TwoHeads : Module {
  nn::Linear in{3, 4};
  HiddenState h{Shape{4}};
  ParamState a{Shape{4}, constant_init(1.0)}, b{Shape{4}, constant_init(5.0)};
  TwoHeads() {
    add("in", in);
    add("h", h);
    add("a", a);
    add("b", b);
  }
  Value update(Value x) override {
    h.set(0.9 * h.value() + in(x));
    return h.value();
  }
};

struct Setup {
  TwoHeads model;
  Learner learner;
  explicit Setup(const Algorithm& a = D_RTRL{})
      : learner(model, a, {numbers({3}, 1)}, {.seed = 3, .dtype = DType::f64}) {}
  GradResult grad(ParamState& head, std::int64_t window) {
    learner.reset_state();
    return learner.etrace_grad(numbers({4, 3}, 2), numbers({4, 4}, 3),
                               [&](const Value& x, const Value& y) {
                                 return sum(learner(x) * head.value() * y);
                               },
                               {.window = window});
  }
};

}  // namespace

TEST_CASE("losses that read other parameters of one shape are different losses") {
  for (const Algorithm& rule : {Algorithm(D_RTRL{}), Algorithm(BPTT{})})
    for (const std::int64_t window : {1, 0}) {
      CAPTURE(rule.name);
      CAPTURE(window);
      Setup both(rule), alone(rule);
      both.grad(both.model.a, window);
      both.model.h.store(0, zeros({4}, DType::f64));
      const GradResult got = both.grad(both.model.b, window);
      const GradResult want = alone.grad(alone.model.b, window);
      CHECK(!got.grads.contains("a"));
      for (const auto& [leaf, g] : want.grads)
        testing::check_close(leaf, got.grads.at(leaf), g, tol::f64);
      CHECK(got.losses == want.losses);
    }
}

TEST_CASE("a loss that comes again is not compiled again") {
  Setup s;
  s.grad(s.model.a, 0);
  const StepProgram* program = s.learner.last_program();
  s.grad(s.model.b, 0);
  s.grad(s.model.a, 0);
  CHECK(s.learner.last_program() == program);
}

}  // namespace loss_cache_test
