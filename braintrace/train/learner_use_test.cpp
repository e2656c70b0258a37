// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/learner_use.h"

#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/train/learner_checkpoint.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/prepared_grad.h"

namespace learner_use_test {

using namespace braintrace;

namespace {

struct Cell {
  nn::GRUCell model{3, 4};
  Learner learner;
  Cell() : learner(model, D_RTRL{}, {zeros({3})}) {}
  TracedFn loss() {
    return [this](const Values& in) {
      return LossResult{.loss = mse(learner(in[0]), in[1]), .results = {}};
    };
  }
  LossHandle handle() { return learner.trace_loss(loss(), {zeros({3}), zeros({4})}); }
};

// What a call of another thread says; empty when it is accepted.
template <class F>
std::string refusal(F call) {
  std::string said;
  std::thread([&] {
    try {
      call();
    } catch (const UserError& e) {
      CHECK(e.kind() == ErrorKind::runtime);
      said = e.what();
    }
  }).join();
  return said;
}

}  // namespace

TEST_CASE("a learner that one thread uses refuses another one") {
  Cell c;
  LossHandle handle = c.handle();
  PreparedGrad prepared = c.learner.prepare(c.loss(), {ones({5, 3}), ones({5, 4})});
  const std::vector<Array> args = {ones({3}), ones({4})};
  {
    const auto inside = c.learner.claim("test");
    CHECK(
        refusal([&] { c.learner.step_grad(args, handle); }) ==
        "step_grad: the learner is in use by another thread; one thread at a time, or a "
        "learner for each");
    CHECK(refusal([&] { c.learner.step({args[0]}); }).starts_with("learner.step: "));
    CHECK(refusal([&] { c.learner.reset_state(); }).starts_with("reset_state: "));
    CHECK(refusal([&] { c.learner.etraces(); }).starts_with("etraces: "));
    const std::vector<Array> data = {ones({5, 3}), ones({5, 4})};
    CHECK(refusal([&] {
            c.learner.etrace_grad(data, c.loss());
          }).starts_with("etrace_grad: "));
    CHECK(
        refusal([&] { c.learner.etrace_evolve({data[0]}); }).starts_with("etrace_evol"));
    CHECK(refusal([&] {
            c.learner.certificate(data, c.loss(), 2);
          }).starts_with("certificate: "));
    CHECK(refusal([&] {
            prepared.grad({ones({5, 3}), ones({5, 4})});
          }).starts_with("PreparedGrad: "));
  }
  CHECK(refusal([&] { c.learner.step_grad(args, handle); }).empty());
}

TEST_CASE("the thread inside a learner may call it again") {
  Cell c;
  const auto mine = c.learner.claim("test");
  GradOptions options{.window = 1};
  options.progress = [&](std::int64_t, std::int64_t) {
    return c.learner.etraces().size() > 0;
  };
  const GradResult r =
      c.learner.etrace_grad({ones({5, 3}), ones({5, 4})}, c.loss(), options);
  CHECK(r.steps == 5);
}

TEST_CASE("a call that fails leaves the learner free") {
  Cell c;
  CHECK_THROWS_AS(c.learner.step({ones({7})}), UserError);
  CHECK(refusal([&] { c.learner.step({ones({3})}); }).empty());
}

TEST_CASE("step_grad refuses the loss of another learner") {
  Cell one, other;
  LossHandle handle = other.handle();
  CHECK_THROWS_WITH_AS(one.learner.step_grad({ones({3}), ones({4})}, handle),
                       doctest::Contains("traced by another learner"), UserError);
}

TEST_CASE("step_grad refuses the loss of a learner that is gone") {
  std::optional<LossHandle> handle;
  {
    Cell gone;
    handle = gone.handle();
  }
  Cell one;
  CHECK_THROWS_WITH_AS(one.learner.step_grad({ones({3}), ones({4})}, *handle),
                       doctest::Contains("traced by another learner"), UserError);
}

TEST_CASE("a prepared gradient says when its learner is gone") {
  std::optional<PreparedGrad> prepared;
  {
    Cell gone;
    prepared.emplace(gone.learner.prepare(gone.loss(), {ones({5, 3}), ones({5, 4})}));
  }
  CHECK_THROWS_WITH_AS(prepared->grad({ones({5, 3}), ones({5, 4})}),
                       "PreparedGrad: the learner no longer exists", UserError);
}

TEST_CASE(
    "a checkpoint whose traces do not fit changes nothing, also without optimiser") {
  Cell c;
  c.learner.step({ones({3})});
  const StateDict before = state_dict(c.model);
  Checkpoint other = checkpoint_of(c.learner, Optimizer(SGD{}), 0);
  for (auto& [path, value] : other.weights) value = zeros(value.shape(), value.dtype());
  other.traces.begin()->second = ones({1});
  CHECK_THROWS_AS(restore(c.learner, other), UserError);
  CHECK(state_dict(c.model) == before);
}

}  // namespace learner_use_test
