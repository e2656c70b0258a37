// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/prepared_grad.h"

#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/train/losses.h"

namespace prepared_grad_test {

using namespace braintrace;

namespace {

struct Net : nn::Module {
  nn::GRUCell rnn;
  nn::Linear out;
  Net() : rnn(3, 6), out(6, 2) {
    add("rnn", rnn);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn(x)); }
};

// A model and its learner, always with the same weights.
struct Twin {
  Net model;
  Learner learner;
  explicit Twin(const Algorithm& a, LearnerOptions o = {})
      : learner(model, a, {zeros({4, 3})}, with_batch(std::move(o))) {}
  static LearnerOptions with_batch(LearnerOptions o) {
    o.batch_size = 4;
    o.seed = 3;
    return o;
  }
  TracedFn loss() {
    return [this](const Values& in) {
      const Value y = learner(in[0]);
      return LossResult{.loss = mse(y, in[1]), .results = {y}};
    };
  }
};

std::vector<Array> data(std::int64_t steps, std::uint64_t seed) {
  return {random_normal(rng_key(seed), {steps, 4, 3}, DType::f32),
          random_normal(rng_key(seed + 1), {steps, 4, 2}, DType::f32)};
}

void check_same(const GradResult& a, const GradResult& b) {
  REQUIRE(a.grads.size() == b.grads.size());
  for (const auto& [leaf, g] : a.grads) {
    INFO(leaf);
    CHECK(b.grads.at(leaf) == g);
  }
  CHECK(a.losses == b.losses);
  CHECK(a.aux == b.aux);
  CHECK(a.steps == b.steps);
}

// Several calls, states and traces moving on: the same bits every time.
void check_twins(const Algorithm& a, const GradOptions& options, LearnerOptions o = {}) {
  Twin one(a, o), other(a, o);
  PreparedGrad prepared = other.learner.prepare(other.loss(), data(11, 0), options);
  GradResult again;
  for (std::uint64_t call = 0; call < 3; ++call) {
    const std::vector<Array> d = data(11, 10 * call);
    const GradResult want = one.learner.etrace_grad(d, one.loss(), options);
    prepared.grad_into(d, again);
    check_same(want, again);
  }
}

}  // namespace

TEST_CASE("a prepared gradient has the bits of etrace_grad") {
  check_twins(D_RTRL{}, {});
  check_twins(D_RTRL{}, {.window = 4});  // the last window is shorter
  check_twins(D_RTRL{}, {.window = 1});
  check_twins(pp_prop{.decay_or_rank = 0.9}, {.carry_traces = false});
  check_twins(BPTT{}, {.reduction = Reduction::sum});
  check_twins(D_RTRL{}, {.loss_output = LossOutput::scalar},
              {.executor = ExecutorKind::interpreter});
}

TEST_CASE("a prepared gradient takes data of another element type in between") {
  Twin one(D_RTRL{}), other(D_RTRL{});
  PreparedGrad prepared = other.learner.prepare(other.loss(), data(7, 0), {.window = 3});
  for (const DType dtype : {DType::f32, DType::f64, DType::f32}) {
    std::vector<Array> d = data(7, 4);
    for (Array& a : d) a = a.astype(dtype);
    check_same(one.learner.etrace_grad(d, one.loss(), {.window = 3}), prepared.grad(d));
  }
}

TEST_CASE("results of a prepared gradient do not change with the next call") {
  Twin twin(D_RTRL{});
  PreparedGrad prepared = twin.learner.prepare(twin.loss(), data(8, 0));
  const GradResult first = prepared.grad(data(8, 0));
  const Array kept = first.grads.at("out/weight/weight").contiguous();
  const std::vector<double> values = kept.to_doubles();
  prepared.grad(data(8, 5));
  CHECK(first.grads.at("out/weight/weight").to_doubles() == values);
}

TEST_CASE("a prepared gradient takes another mask") {
  Twin one(D_RTRL{}), other(D_RTRL{});
  const Array mask = array({1, 0, 1, 0, 1});
  PreparedGrad prepared = other.learner.prepare(other.loss(), data(5, 0));
  prepared.set_mask(mask);
  check_same(one.learner.etrace_grad(data(5, 0), one.loss(), {.mask = mask}),
             prepared.grad(data(5, 0)));
  CHECK_THROWS_WITH_AS(prepared.set_mask(ones({4})),
                       "PreparedGrad: mask must have shape (5,), got [4]", UserError);
}

TEST_CASE("a prepared gradient follows a learner that changes its batch size") {
  Twin one(D_RTRL{}), other(D_RTRL{});
  PreparedGrad prepared = other.learner.prepare(other.loss(), data(5, 0));
  prepared.grad(data(5, 0));
  for (Twin* t : {&one, &other}) t->learner.reset_state(2);
  other.learner.reset_state(4);
  one.learner.reset_state(4);
  check_same(one.learner.etrace_grad(data(5, 1), one.loss()), prepared.grad(data(5, 1)));
}

TEST_CASE("a prepared gradient refuses other shapes by name and value") {
  Twin twin(D_RTRL{});
  PreparedGrad prepared = twin.learner.prepare(twin.loss(), data(5, 0));
  CHECK_THROWS_WITH_AS(
      prepared.grad(data(6, 0)),
      "PreparedGrad: sequence 0 must have the prepared shape [5,4,3], got [6,4,3]",
      UserError);
  CHECK_THROWS_WITH_AS(prepared.grad({data(5, 0)[0]}),
                       "PreparedGrad: 2 sequences were prepared, got 1", UserError);
  CHECK_THROWS_AS(twin.learner.prepare(twin.loss(), {}), UserError);
}

}  // namespace prepared_grad_test
