// SPDX-License-Identifier: Apache-2.0
// Learners and threads: the number of threads changes no bit, and learners that share
// nothing may run at the same time. Built with the thread sanitizer too (preset tsan).
#include <fstream>
#include <thread>

#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/optimizers.h"

namespace threads_test {

using namespace braintrace;

namespace {

struct Net : nn::Module {
  nn::GRUCell rnn;
  nn::SparseLinear wires;
  nn::Linear out;
  Net() : rnn(8, 96), wires(random_structure(96, 96, 20, 1)), out(96, 4) {
    add("rnn", rnn);
    add("wires", wires);
    add("out", out);
  }
  Value update(Value x) override { return out(tanh(wires(rnn(x)))); }
};

// Two gradients over a sequence, then some steps with the weights moving.
StateDict learned(const Algorithm& algorithm, int threads, std::uint64_t seed) {
  Net model;
  Learner l(model, algorithm, {zeros({32, 8})},
            {.batch_size = 32, .seed = seed, .threads = threads});
  const Array xs = random_normal(rng_key(seed), {6, 32, 8}, DType::f32);
  const Array ys = random_normal(rng_key(seed + 1), {6, 32, 4}, DType::f32);
  const PairLoss loss = [&](const Value& x, const Value& y) { return mse(l(x), y); };
  Optimizer adam(Adam{.lr = 1e-2});
  StateDict last;
  for (int i = 0; i < 2; ++i) {
    last = l.etrace_grad(xs, ys, loss).grads;
    adam.update(model, last);
  }
  return last;
}

void check_same(const StateDict& a, const StateDict& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [leaf, g] : a) {
    INFO(leaf);
    CHECK(b.at(leaf) == g);
  }
}

}  // namespace

TEST_CASE("a learner gives the same bits with one, two and four threads") {
  for (const Algorithm& a :
       {Algorithm(D_RTRL{}), Algorithm(pp_prop{.decay_or_rank = 0.9}),
        Algorithm(BPTT{})}) {
    CAPTURE(a.name);
    const StateDict one = learned(a, 1, 1);
    for (const int threads : {2, 4}) check_same(one, learned(a, threads, 1));
  }
}

TEST_CASE("two learners in two threads do not disturb each other") {
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    const StateDict first = learned(D_RTRL{}, threads, 1);
    const StateDict second = learned(pp_prop{.decay_or_rank = 0.9}, threads, 5);
    StateDict a, b;
    std::thread one([&] { a = learned(D_RTRL{}, threads, 1); });
    std::thread other([&] { b = learned(pp_prop{.decay_or_rank = 0.9}, threads, 5); });
    one.join();
    other.join();
    check_same(first, a);
    check_same(second, b);
  }
}

TEST_CASE("all programs of a learner run on one set of threads") {
  const auto running = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
    return 0;
  };
  nn::ValinaRNNCell model(8, 16);
  Learner l(model, D_RTRL{}, {zeros({4, 8})}, {.batch_size = 4, .threads = 3});
  const Array xs = ones({7, 4, 8}), ys = zeros({7, 4, 16});
  const auto learn = [&](std::int64_t window) {
    l.etrace_grad(xs, ys, [&](const Value& x, const Value& y) { return mse(l(x), y); },
                  {.window = window});
  };
  learn(1);
  const int with_one_program = running();
  CHECK(with_one_program >= 3);
  learn(2);
  learn(7);
  CHECK(running() == with_one_program);
  CHECK(l.threads()->size() == 3);
}

TEST_CASE("an optimiser that shares a learner's threads moves weights as one without") {
  const auto moved = [](int threads) {
    nn::ValinaRNNCell model(8, 256);
    Learner l(model, D_RTRL{}, {zeros({4, 8})},
              {.batch_size = 4, .seed = 1, .threads = threads});
    Optimizer adam(Adam{.lr = 1e-2});
    adam.attach(model, l.threads());
    const std::vector<Array> args = {ones({4, 8}), zeros({4, 256})};
    LossHandle loss = l.trace_loss(
        [&](const Values& in) {
          return LossResult{.loss = mse(l(in[0]), in[1]), .results = {}};
        },
        args);
    for (int t = 0; t < 4; ++t) adam.update(*l.step_grad(args, loss).gradients);
    return state_dict(model);
  };
  check_same(moved(1), moved(2));
}

}  // namespace threads_test
