// SPDX-License-Identifier: Apache-2.0
// A GRU learns to integrate its input, online (D_RTRL) and by back-propagation (BPTT).
#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

struct Net : nn::Module {
  nn::GRUCell rnn;
  nn::Linear out;
  Net(std::int64_t n_in, std::int64_t n, std::int64_t n_out)
      : rnn(n_in, n), out(n, n_out) {
    add("rnn", rnn);
    add("out", out);
  }
  Value update(Value x) override { return out(rnn(x)); }
};

judge::Outcome train(std::uint64_t seed, const Algorithm& rule) {
  const Task task = integrator_task({.task = {seed}});
  Net model(task.shape().features, 32, task.shape().outputs);
  Learner learner = compile(model, rule, judge::example(task), judge::options(seed));
  return judge::learn(learner, task, Optimizer(Adam{.lr = 1e-2}), 60);
}

int main() { return judge::run({D_RTRL{}, BPTT{}}, train); }
