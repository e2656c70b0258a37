// SPDX-License-Identifier: Apache-2.0
// The module check and the BPTT oracle on models small enough to do by hand.
#include "braintrace/testing/check_module.h"

#include <doctest/doctest.h>

#include "braintrace/testing/check_op.h"

namespace braintrace::testing::check_module_test {
namespace {

// h' = a h + w x, y = f(h').
class Leaky : public Module {
 public:
  explicit Leaky(Hook f) : f_(std::move(f)) {
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    h.set(0.5 * h.value() + w.value() * x);
    return f_(h.value());
  }

  ParamState w{Shape{2}, constant_init(3)};
  HiddenState h{Shape{2}};

 private:
  Hook f_;
};

// Gives other numbers the second time it runs.
class Moody : public Module {
 public:
  Value update(Value x) override { return x * static_cast<double>(++calls_); }

 private:
  int calls_ = 0;
};

}  // namespace

TEST_CASE("bptt sums the loss and its gradient over the whole sequence") {
  Leaky m([](const Value& h) { return h; });
  init_all_states(m, {.dtype = DType::f64});
  const Array xs = array({2, 2}, {1, 2, 10, 20}, DType::f64);
  const BpttResult r = bptt(m, steps_of(xs), [](std::size_t t, const Values& y) {
    return static_cast<double>(t + 1) * sum(y[0]);
  });
  // h1 = 3 x1, h2 = h1 / 2 + 3 x2; loss = sum(h1) + 2 sum(h2); by w: x1 + 2 (x1 / 2 +
  // x2).
  CHECK(r.outputs[1][0] == array({31.5, 63}, DType::f64));
  CHECK(r.states[1].at("h") == array({31.5, 63}, DType::f64));
  CHECK(r.loss == 9 + 2 * 94.5);
  CHECK(r.grads.at("w") == array({22, 44}, DType::f64));
  CHECK(r.grads.size() == 1);
  CHECK(m.h.stored() == zeros({2}, DType::f64));
}

TEST_CASE("check_module accepts a right derivative and refuses a wrong one") {
  const auto xs = steps_of(uniform({3, 2}, -1, 1));
  Leaky right([](const Value& h) { return tanh(h); });
  check_module(right, xs);
  Leaky wrong([](const Value& h) { return tanh(stop_gradient(h)); });
  CHECK_THROWS_AS(check_module(wrong, xs), CheckFailure);
}

TEST_CASE("check_module refuses a module that computes something else when traced") {
  Moody m;
  CHECK_THROWS_AS(check_module(m, uniform({2}, 1, 2)), CheckFailure);
}

TEST_CASE("an empty sequence has no gradient") {
  Leaky m([](const Value& h) { return h; });
  init_all_states(m);
  CHECK_THROWS_WITH_AS(
      bptt(m, {}, [](std::size_t, const Values& y) { return sum(y[0]); }),
      "unroll: the sequence must have at least one step", UserError);
  CHECK_THROWS_WITH_AS(steps_of(scalar(1)),
                       "steps_of: needs a leading time axis, got a scalar", UserError);
}

}  // namespace braintrace::testing::check_module_test
