// SPDX-License-Identifier: Apache-2.0
// Windows of steps as one program against the same steps one by one.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/algo/window_program.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace window_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

struct Case {
  std::string model, algorithm;
  std::int64_t n_in, n_out;
  AlgorithmArgs args = {};
};

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

struct Run {
  GradResult first, second;
  std::vector<TraceView> traces;
};

Run run(const Case& c, std::int64_t window, LearningOptions learning, ExecutorKind kind) {
  const auto model = nn::build_model(c.model);
  LearnerOptions options{.batch_size = 2, .seed = 3, .dtype = DType::f64};
  options.learning = learning;
  options.executor = kind;
  Learner learner = compile(*model, algorithm_by_name(c.algorithm, c.args),
                            numbers({2, c.n_in}, 1), options);
  const Array xs = numbers({7, 2, c.n_in}, 2), ys = numbers({7, 2, c.n_out}, 3);
  const auto loss = [&](const Value& x, const Value& y) { return mse(learner(x), y); };
  Run r;
  const GradOptions o{.window = window, .reduction = Reduction::sum};
  r.first = learner.etrace_grad(xs, ys, loss, o);
  r.second = learner.etrace_grad(ys.shape() == xs.shape() ? ys : xs, ys, loss, o);
  r.traces = learner.etraces();
  return r;
}

void compare(const Run& got, const Run& want, double tolerance) {
  for (const auto& [leaf, g] : want.first.grads)
    check_close(leaf, got.first.grads.at(leaf), g, tolerance);
  for (const auto& [leaf, g] : want.second.grads)
    check_close("again " + leaf, got.second.grads.at(leaf), g, tolerance);
  check_close("losses", got.first.losses, want.first.losses, tolerance);
  for (std::size_t i = 0; i < want.traces.size(); ++i)
    check_close(want.traces[i].slot.name(), got.traces[i].value, want.traces[i].value,
                tolerance);
}

// Two states per unit, enough units to be taken apart.
const char* spiking =
    R"({"model": {"kind": "lif_net", "n_in": 6, "n_rec": 20, "n_out": 4, "V_th": 0.2}})";

std::vector<Case> cases() {
  return {{"two_layer_gru", "d_rtrl", 10, 5},
          {spiking, "d_rtrl", 6, 4},
          {spiking, "eprop", 6, 4},
          {spiking, "pp_prop", 6, 4, {.decay_or_rank = 0.9}}};
}

}  // namespace

TEST_CASE("a window gives the numbers of its steps") {
  for (const Case& c : cases()) {
    CAPTURE(c.model);
    CAPTURE(c.algorithm);
    const Run want = run(c, 1, {}, ExecutorKind::interpreter);
    double live = 0;
    for (const TraceView& t : want.traces)
      for (double v : t.value.to_doubles()) live += std::abs(v);
    CHECK(live > 1e-3);
    for (const std::int64_t window : {2, 3, 7}) {
      CAPTURE(window);
      compare(run(c, window, {}, ExecutorKind::interpreter), want, 1e-10);
    }
    compare(run(c, 3, {}, ExecutorKind::plan), want, 1e-10);
    compare(run(c, 1, {}, ExecutorKind::plan), want, 1e-10);
  }
}

TEST_CASE("a sequence that ends with its window leaves zero traces") {
  for (const Case& c : cases()) {
    CAPTURE(c.model);
    CAPTURE(c.algorithm);
    const auto model = nn::build_model(c.model);
    const auto other = nn::build_model(c.model);
    const LearnerOptions options{.batch_size = 2, .seed = 3, .dtype = DType::f64};
    const Algorithm algorithm = algorithm_by_name(c.algorithm, c.args);
    Learner learner = compile(*model, algorithm, numbers({2, c.n_in}, 1), options);
    Learner stepwise = compile(*other, algorithm, numbers({2, c.n_in}, 1), options);
    const Array xs = numbers({7, 2, c.n_in}, 2), ys = numbers({7, 2, c.n_out}, 3);
    const auto loss = [](Learner& l) {
      return [&l](const Value& x, const Value& y) { return mse(l(x), y); };
    };
    for (int round = 0; round < 2; ++round) {
      const GradResult got = learner.etrace_grad(
          xs, ys, loss(learner),
          {.window = 7, .carry_traces = false, .reduction = Reduction::sum});
      stepwise.init_etrace_state();
      const GradResult want = stepwise.etrace_grad(
          xs, ys, loss(stepwise), {.window = 1, .reduction = Reduction::sum});
      for (const auto& [leaf, g] : want.grads)
        check_close(leaf, got.grads.at(leaf), g, 1e-10);
      for (const TraceView& t : learner.etraces())
        CHECK(t.value == zeros(t.value.shape(), t.value.dtype()));
    }
  }
}

TEST_CASE("windows larger than the cache are cut where traces are small") {
  const auto steps = [&](const Algorithm& rule, std::int64_t window, StateDict& grads,
                         std::int64_t n_in = 2, std::int64_t batch = 4) {
    const Array xs = random_normal(rng_key(2), {40, batch, n_in}, DType::f32);
    const Array ys = zeros({40, batch, 10000});
    const auto model = nn::build_model(fmt::format(
        R"({{"model": {{"kind": "leaky_linear", "n_in": {}, "n_rec": 10000}}}})", n_in));
    Learner learner =
        compile(*model, rule, zeros({batch, n_in}), {.batch_size = batch, .seed = 3});
    const auto loss = [&](const Value& x, const Value& y) { return mse(learner(x), y); };
    grads = learner.etrace_grad(xs, ys, loss, {.window = window}).grads;
    return learner.last_program()->steps;
  };
  StateDict by_step, cut, whole;
  steps(pp_prop{.decay_or_rank = 0.9}, 1, by_step);
  CHECK(steps(pp_prop{.decay_or_rank = 0.9}, 40, cut) == 20);
  for (const auto& [leaf, g] : by_step) check_close(leaf, cut.at(leaf), g, tol::f32);
  CHECK(steps(D_RTRL{}, 40, whole) == 40);
  // Where one step fills much of the cache some are taken all the same, and more of them
  // where there are many weights.
  CHECK(steps(pp_prop{.decay_or_rank = 0.9}, 40, cut, 2, 16) == 10);
  CHECK(steps(pp_prop{.decay_or_rank = 0.9}, 40, cut, 100, 4) == 40);
}

TEST_CASE("windows have one length where few more of them allow it") {
  CHECK(steps_per_window(40, 64) == 40);
  CHECK(steps_per_window(100, 64) == 50);
  CHECK(steps_per_window(1000, 64) == 50);  // 20 windows, where 16 would do
  CHECK(steps_per_window(90, 64) == 45);
  CHECK(steps_per_window(100, 64, false) == 64);
  CHECK(steps_per_window(101, 64) == 64);  // a prime: two programs either way
  CHECK(steps_per_window(65, 64) == 64);   // five windows are too many
  CHECK(steps_per_window(7, 0) == 1);      // one step is too large already
  CHECK(steps_per_window(1, 64) == 1);
}

TEST_CASE("a sequence longer than a window is one program when it divides evenly") {
  const Case c = cases().front();
  const auto model = nn::build_model(c.model);
  Learner learner = compile(*model, algorithm_by_name("d_rtrl"), numbers({2, c.n_in}, 1),
                            {.batch_size = 2, .seed = 3, .dtype = DType::f64});
  learner.etrace_grad(numbers({100, 2, c.n_in}, 2), numbers({100, 2, c.n_out}, 3),
                      [&](const Value& x, const Value& y) { return mse(learner(x), y); });
  CHECK(learner.last_program()->steps == 50);
}

}  // namespace window_test
