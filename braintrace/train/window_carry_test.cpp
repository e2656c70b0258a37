// SPDX-License-Identifier: Apache-2.0
// A sequence that ends with its call keeps its history until then, however it is cut.
#include <array>

#include <doctest/doctest.h>

#include "braintrace/nn/model_registry.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"

namespace window_carry_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

constexpr std::int64_t kSteps = 7;

const std::string kGru =
    R"({"kind": "two_layer_gru", "n_in": 3, "n_rec": 4, "n_out": 2})";

Array numbers(const Shape& shape, std::uint64_t key) {
  return random_normal(rng_key(key), shape, DType::f64);
}

// A model and its learner, always with the same weights.
struct Twin {
  std::unique_ptr<Module> model;
  Learner learner;
  explicit Twin(const Algorithm& a, ExecutorKind kind = ExecutorKind::plan,
                const std::string& description = kGru)
      : model(nn::build_model(description)),
        learner(*model, a, {numbers({2, 3}, 1)},
                {.batch_size = 2, .seed = 3, .dtype = DType::f64, .executor = kind}) {
    const LearningSignal signal = a.config.learning_signal();
    if (signal == LearningSignal::modulatory) learner.set_modulator(scalar(0.5));
    if (signal == LearningSignal::bootstrapped)
      learner.set_synthesizer(SyntheticGradient({{0, {2, 4, 1}}, {1, {2, 4, 1}}}));
  }
  GradResult grad(std::uint64_t seed, const GradOptions& o, std::int64_t steps = kSteps) {
    return learner.etrace_grad(
        numbers({steps, 2, 3}, seed), numbers({steps, 2, 2}, seed + 1),
        [this](const Value& x, const Value& y) { return mse(learner(x), y); }, o);
  }
};

std::vector<Algorithm> every_rule() {
  return {D_RTRL{},
          D_RTRL{.vjp_method = VjpMethod::multi_step},
          pp_prop{.decay_or_rank = 0.9},
          EProp{.kappa_filter_decay = 0.8},
          EProp{.feedback = "random", .random_feedback_key = 1},
          OSTLRecurrent{},
          OSTLFeedforward{},
          SnAp{.n = 2},
          UORO{},
          ThreeFactor{},
          DNI{},
          Hybrid{.decay_or_rank = 0.9},
          ExactRTRL{},
          BPTT{}};
}

// Windows are another rule where the rule is of windows.
std::int64_t reference_window(const Learner& l, std::int64_t window) {
  return l.algorithm().vjp_method == VjpMethod::multi_step ? window : 1;
}

void check_close(const GradResult& got, const GradResult& want) {
  for (const auto& [leaf, g] : want.grads)
    testing::check_close(leaf, got.grads.at(leaf), g, tol::f64_golden);
  testing::check_close("losses", got.losses, want.losses, tol::f64_golden);
}

void check_zero(const Learner& l) {
  for (const TraceView& t : l.etraces()) {
    CAPTURE(t.slot.name());
    if (!t.slot.initial) CHECK(t.value == zeros(t.value.shape(), t.value.dtype()));
  }
}

}  // namespace

TEST_CASE("history crosses the windows of a sequence that ends with them") {
  for (const Algorithm& rule : every_rule())
    for (const ExecutorKind kind : {ExecutorKind::plan, ExecutorKind::interpreter})
      for (const std::int64_t window : {1, 2, 3, 0}) {
        CAPTURE(rule.name);
        CAPTURE(window);
        Twin ends(rule, kind), goes_on(rule, ExecutorKind::interpreter);
        const std::int64_t reference = reference_window(goes_on.learner, window);
        for (std::uint64_t seed : {2, 12}) {
          check_close(ends.grad(seed, {.window = window, .carry_traces = false}),
                      goes_on.grad(seed, {.window = reference}));
          check_zero(ends.learner);
          for (const TraceView& t : goes_on.learner.etraces())
            if (!t.slot.initial)
              goes_on.learner.set_etrace(t.slot.name(), zeros(t.value.shape()));
        }
      }
}

TEST_CASE("BPTT goes back through the whole sequence, whatever the window") {
  const GradResult whole = Twin(BPTT{}).grad(2, {});
  for (const std::int64_t window : {1, 2, 7}) {
    CAPTURE(window);
    check_close(Twin(BPTT{}).grad(2, {.window = window}), whole);
  }
}

TEST_CASE("history crosses windows whose length is chosen") {
  Twin ends(D_RTRL{}), goes_on(D_RTRL{});
  const std::int64_t steps = 150;
  const GradResult want = goes_on.grad(2, {.window = 1}, steps);
  check_close(ends.grad(2, {.carry_traces = false}, steps), want);
  CHECK(ends.learner.last_program()->steps < steps);
  CHECK(ends.learner.last_program()->num_traces_out == 0);
}

TEST_CASE("a sequence that ends with its windows forgets the ones before it no earlier") {
  Twin ends(D_RTRL{}), goes_on(D_RTRL{});
  for (Twin* t : {&ends, &goes_on}) t->grad(2, {});
  check_close(ends.grad(12, {.window = 3, .carry_traces = false}),
              goes_on.grad(12, {.window = 1}));
}

TEST_CASE("the first of several windows reads no traces, the last one writes none") {
  Twin t(D_RTRL{});
  std::vector<std::array<bool, 2>> reads_writes;
  const auto note = [&](auto...) {
    const StepProgram* p = t.learner.last_program();
    reads_writes.push_back({p->num_traces > 0, p->num_traces_out > 0});
    return true;
  };
  for (int sequence = 0; sequence < 2; ++sequence) {
    reads_writes.clear();
    t.grad(2, {.window = 3, .carry_traces = false, .progress = note});
    CHECK(reads_writes ==
          std::vector<std::array<bool, 2>>{{false, true}, {true, true}, {true, false}});
  }
}

// Large traces are set aside as memory between sequences, not cleared.
TEST_CASE("sequences that end share the room of their traces, however they are cut") {
  const std::string gru =
      R"({"kind": "two_layer_gru", "n_in": 3, "n_rec": 96, "n_out": 2})";
  for (const Algorithm& rule :
       {Algorithm(D_RTRL{}), Algorithm(EProp{.kappa_filter_decay = 0.8})}) {
    Twin ends(rule, ExecutorKind::plan, gru), goes_on(rule, ExecutorKind::plan, gru);
    std::size_t largest = 0;
    for (const TraceView& t : ends.learner.etraces())
      largest = std::max(largest, t.value.num_bytes());
    REQUIRE(largest > (std::size_t{1} << 18));
    std::uint64_t seed = 2;
    for (const std::int64_t window : {3, 3, 7, 2, 1, 3, 1, 3}) {
      CAPTURE(window);
      check_close(ends.grad(seed, {.window = window, .carry_traces = false}),
                  goes_on.grad(seed, {.window = 1}));
      check_zero(ends.learner);
      goes_on.learner.init_etrace_state();
      seed += 2;
    }
  }
}

TEST_CASE("a sequence that was stopped early has ended too") {
  Twin t(D_RTRL{});
  t.grad(2,
         {.window = 3, .carry_traces = false, .progress = [](auto...) { return false; }});
  CHECK(t.learner.trace_steps() == 3);
  check_zero(t.learner);
}

}  // namespace window_carry_test
