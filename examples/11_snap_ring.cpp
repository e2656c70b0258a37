// SPDX-License-Identifier: Apache-2.0
// SnAp on a ring: a weight's trace follows its influence along sparse wires, n steps far.
#include "judge.h"
#include <fmt/format.h>

#include "braintrace/nn/nn.h"
#include "braintrace/train/metrics.h"

using namespace braintrace;

// Unit i hears itself and its two neighbours.
SparseStructure ring(std::int64_t n) {
  Ints rows, cols;
  for (std::int64_t o = 0; o < n; ++o) {
    for (std::int64_t d : {-1, 0, 1}) {
      rows.push_back((o + d + n) % n);
      cols.push_back(o);
    }
  }
  return coo_structure(n, n, rows, cols);
}

// h' = tanh(x W + ring(h)).
struct Net : nn::Module {
  nn::Linear inputs;
  nn::SparseLinear ring;
  HiddenState h;
  nn::Linear out;

  Net(std::int64_t n_in, std::int64_t n, std::int64_t n_out)
      : inputs(n_in, n),
        ring(::ring(n), {.w_init = nn::init::normal(0, 0.6)}),
        h({n}),
        out(n, n_out) {
    add("inputs", inputs);
    add("ring", ring);
    add("h", h);
    add("out", out);
  }

  Value update(Value x) override {
    h.set(tanh(inputs(x) + ring(h.value())));
    return out(h.value());
  }
};

// Of the untrained network on the first batch.
StateDict gradients(const Task& task, std::uint64_t seed, const Algorithm& rule) {
  Net model(task.shape().features, 24, task.shape().outputs);
  Learner learner = compile(model, rule, judge::example(task), judge::options(seed));
  Optimizer nothing(SGD{.lr = 0});
  return judge::fit(learner, task, nothing, 1);
}

judge::Outcome train(std::uint64_t seed) {
  const Task task = pattern_task({.steps = 20, .task = {seed}});
  const StateDict exact = gradients(task, seed, BPTT{});
  const auto cosine = [&](const Algorithm& rule) {
    return gradient_cosine(exact, gradients(task, seed, rule));
  };
  fmt::print("cosine to BPTT: D_RTRL {:.2f}, SnAp(2) {:.2f}, SnAp(3) {:.2f}\n",
             cosine(D_RTRL{}), cosine(SnAp{.n = 2}), cosine(SnAp{.n = 3}));
  Net model(task.shape().features, 24, task.shape().outputs);
  Learner learner =
      compile(model, SnAp{.n = 2}, judge::example(task), judge::options(seed));
  return judge::learn(learner, task, Optimizer(Adam{.lr = 1e-2}), 100);
}

int main() { return judge::run(train); }
