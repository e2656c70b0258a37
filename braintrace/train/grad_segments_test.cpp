// SPDX-License-Identifier: Apache-2.0
// Back-propagation in segments: the numbers of the whole sequence in less memory.
#include <doctest/doctest.h>

#include "braintrace/algo/memory_plan.h"
#include "braintrace/nn/nn.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/peak_memory.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace grad_segments_test {

using namespace braintrace;

namespace {

struct Net : nn::Module {
  nn::LSTMCell rnn;
  nn::Linear out;
  explicit Net(std::int64_t n) : rnn(3, n), out(n, 2) {
    add("rnn", rnn);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn(x)); }
};

struct Run {
  GradResult grad;
  StateDict states;
  std::int64_t trace_steps = 0;
};

std::vector<Array> data(std::int64_t steps, std::int64_t batch, DType dtype) {
  return {random_normal(rng_key(1), {steps, batch, 3}, dtype),
          random_normal(rng_key(2), {steps, batch, 2}, dtype)};
}

Run learned(const Algorithm& a, std::int64_t steps, GradOptions options = {}) {
  Net model(5);
  Learner l(model, a, {zeros({2, 3}, DType::f64)},
            {.batch_size = 2, .seed = 1, .dtype = DType::f64});
  const auto loss = [&](const Values& in) {
    const Value y = l(in[0]);
    return LossResult{.loss = mse(y, in[1]), .results = {y}};
  };
  Run r;
  for (int call = 0; call < 2; ++call)  // the second from the states of the first
    r.grad = l.etrace_grad(data(steps, 2, DType::f64), loss, options);
  for (const NamedState& s : l.hidden_states())
    r.states[to_slashes(s.path)] = s.state->stored();
  r.trace_steps = l.trace_steps();
  return r;
}

void check_same(const Run& a, const Run& b) {
  for (const auto& [leaf, g] : a.grad.grads) {
    INFO(leaf);
    testing::check_close("gradient", b.grad.grads.at(leaf), g, tol::f64);
  }
  testing::check_close("losses", b.grad.losses, a.grad.losses, tol::f64);
  REQUIRE(b.grad.aux.size() == 1);
  testing::check_close("results", b.grad.aux[0], a.grad.aux[0], tol::f64);
  for (const auto& [path, h] : a.states)
    testing::check_close("state", b.states.at(path), h, tol::f64);
  CHECK(a.trace_steps == b.trace_steps);
}

// Peak bytes over those before it, of one gradient.
double peak_of(const Algorithm& a, std::int64_t steps) {
  Net model(64);
  Learner l(model, a, {zeros({8, 3})}, {.batch_size = 8, .seed = 1});
  const std::vector<Array> d = data(steps, 8, DType::f32);
  testing::reset_peak();
  const double before = *testing::peak_bytes();
  l.etrace_grad(d, [&](const Values& in) {
    return LossResult{.loss = mse(l(in[0]), in[1]), .results = {}};
  });
  return *testing::peak_bytes() - before;
}

}  // namespace

TEST_CASE("back-propagation in segments gives the numbers of the whole sequence") {
  const Run whole = learned(BPTT{}, 23);
  for (std::int64_t segments : {std::int64_t{2}, std::int64_t{5}, std::int64_t{23},
                                std::int64_t{100}, kAutomaticSegments})
    check_same(whole, learned(BPTT{.segments = segments}, 23));
}

TEST_CASE("segments respect the mask and the loss sink's order") {
  const GradOptions masked{.mask = array({1, 0, 0.5, 1, 1, 0, 1}, DType::f64)};
  check_same(learned(BPTT{}, 7, masked), learned(BPTT{.segments = 3}, 7, masked));
  std::vector<std::int64_t> seen;
  GradOptions sink;
  sink.loss_sink = [&](std::int64_t t, double) { seen.push_back(t); };
  learned(BPTT{.segments = 2}, 3, sink);
  CHECK(seen == std::vector<std::int64_t>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("a call in segments that fails leaves the learner as it was") {
  Net model(5);
  Learner l(model, BPTT{.segments = 2}, {zeros({2, 3})}, {.batch_size = 2, .seed = 1});
  const Array before = l.hidden_states()[0].state->stored();
  const auto at = [](std::int64_t t) -> std::vector<Array> {
    BT_REQUIRE(t < 5, "the sensor broke");
    return {ones({2, 3}), zeros({2, 2})};
  };
  const auto loss = [&](const Values& in) {
    return LossResult{.loss = mse(l(in[0]), in[1]), .results = {}};
  };
  CHECK_THROWS_WITH_AS(l.etrace_grad(SequenceSource{6, at}, loss), "the sensor broke",
                       UserError);
  CHECK(l.hidden_states()[0].state->stored() == before);
  CHECK(l.trace_steps() == 0);
}

TEST_CASE("segments are counted from 1, 0 is automatic") {
  CHECK(steps_per_segment(1, 10) == 10);
  CHECK(steps_per_segment(3, 10) == 4);
  CHECK(steps_per_segment(99, 10) == 1);
  CHECK(steps_per_segment(kAutomaticSegments, 100) == 10);
  CHECK_THROWS_WITH_AS(Algorithm(BPTT{.segments = -1}),
                       "BPTT: segments must be >= 1, or 0 for automatic, got -1",
                       UserError);
}

TEST_CASE("the memory of automatic segments grows with the root of the length") {
  Net model(64);
  Learner l(model, BPTT{}, {zeros({8, 3})}, {.batch_size = 8});
  const auto bytes = [&](const Algorithm& a, std::int64_t steps) {
    return static_cast<double>(
        memory_plan(l.graph(), a, {.window = steps}).total_bytes());
  };
  const BPTT rooted{.segments = kAutomaticSegments};
  CHECK(bytes(BPTT{}, 10'000) > 99 * bytes(BPTT{}, 100));
  CHECK(bytes(rooted, 10'000) < 11 * bytes(rooted, 100));
  CHECK(bytes(rooted, 10'000) < 0.05 * bytes(BPTT{}, 10'000));
  if (!testing::reset_peak() || !testing::peak_bytes()) return;
  CHECK(peak_of(rooted, 2500) < 0.35 * peak_of(BPTT{}, 2500));
}

}  // namespace grad_segments_test
