// SPDX-License-Identifier: Apache-2.0
// Axes of size 1 hold no positions: ops that add or drop one stay position by position.
#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace unit_axes_test {

using namespace braintrace;

namespace {

constexpr std::int64_t kSteps = 6;

// Units that remember what a convolution tells them.
struct LeakyConv : nn::Module {
  nn::Conv1d conv{{7, 2}, 3, {.kernel_size = 3}};
  HiddenState h{Shape{7, 3}};
  LeakyConv() {
    add("conv", conv);
    add("h", h);
  }
  Value update(Value x) override {
    h.set(0.7 * h.value() + tanh(conv(x)));
    return h.value();
  }
};

// The same of a product that makes an axis, or of a state that has one.
struct LeakyProduct : nn::Module {
  ParamState w{Shape{5, 4}, nn::init::xavier_normal()};
  HiddenState h;
  bool axis_in_state;
  explicit LeakyProduct(bool in_state)
      : h(in_state ? Shape{4, 1} : Shape{4}), axis_in_state(in_state) {
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    const Value y = axis_in_state ? expand_dims(matmul(x, w.value()), -1)
                                  : squeeze(matmul(expand_dims(x, 0), w.value()), 0);
    h.set(0.7 * h.value() + tanh(y));
    return h.value();
  }
};

enum class Lead { none, batch, lanes };

template <class Model>
StateDict gradients(Model& model, const Algorithm& rule, const Shape& x, Lead lead,
                    std::int64_t window) {
  const auto with_lead = [&](Shape s) {
    if (lead != Lead::none) s.insert(s.begin(), 1);
    return s;
  };
  LearnerOptions options{.seed = 5, .dtype = DType::f64};
  if (lead != Lead::none) options.batch_size = 1;
  options.vmap = lead == Lead::lanes;
  Learner learner = compile(model, rule, zeros(with_lead(x), DType::f64), options);
  for (const ParameterVerdict& v : learner.graph().verdicts)
    CHECK(v.verdict == Verdict::direct);
  Shape shape = with_lead(x);
  shape.insert(shape.begin(), kSteps);
  const auto loss = [&](const Values& in) {
    return LossResult{.loss = sum(square(learner(in[0]))), .results = {}};
  };
  return learner
      .etrace_grad({random_normal(rng_key(1), shape, DType::f64)}, loss,
                   {.window = window})
      .grads;
}

}  // namespace

TEST_CASE("a convolution without a batch is traced like one with a batch of one") {
  const Shape x{7, 2};
  for (const Algorithm& rule :
       {Algorithm(D_RTRL{}), Algorithm(pp_prop{.decay_or_rank = 0.9}),
        Algorithm(OSTLFeedforward{}), Algorithm(Hybrid{.decay_or_rank = 0.9})}) {
    LeakyConv batched;
    const StateDict want = gradients(batched, rule, x, Lead::batch, 1);
    for (const Lead lead : {Lead::none, Lead::lanes})
      for (const std::int64_t window : {1, 0}) {
        CAPTURE(rule.name);
        CAPTURE(window);
        LeakyConv model;
        const StateDict got = gradients(model, rule, x, lead, window);
        for (const auto& [leaf, g] : want)
          testing::check_close(leaf, got.at(leaf), g, tol::f64);
      }
  }
}

TEST_CASE("a leaky state behind an axis of size 1 learns exactly") {
  for (const bool in_state : {false, true})
    for (const std::int64_t window : {1, 0}) {
      CAPTURE(in_state);
      LeakyProduct a(in_state), b(in_state);
      const StateDict online = gradients(a, D_RTRL{}, {5}, Lead::none, window);
      const StateDict exact = gradients(b, BPTT{}, {5}, Lead::none, 0);
      for (const auto& [leaf, g] : exact)
        testing::check_close(leaf, online.at(leaf), g, tol::f64);
    }
}

}  // namespace unit_axes_test
