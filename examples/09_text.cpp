// SPDX-License-Identifier: Apache-2.0
// A character-level language model, trained online: which character comes next?
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

// Small sentences, drawn by a linear congruence so that every language writes the same.
std::string story(int sentences) {
  const char* const words[3][4] = {
      {"the cat", "a dog", "my friend", "the old bird"},
      {"sees", "follows", "likes", "hears"},
      {"the moon", "a small mouse", "the river", "an apple"}};
  std::string text;
  std::uint64_t draw = 1;
  for (int s = 0; s < sentences; ++s) {
    for (int i = 0; i < 3; ++i) {
      draw = (draw * 1103515245 + 12345) % (1ULL << 31);
      text += std::string(words[i][draw / 65536 % 4]) + (i == 2 ? ". " : " ");
    }
  }
  return text;
}

judge::Outcome train(std::uint64_t seed) {
  const Task task = text_task({.text = story(400), .task = {seed}});
  Net model(task.shape().features, 64, task.shape().outputs);
  Learner learner = compile(model, D_RTRL{}, judge::example(task), judge::options(seed));
  return judge::learn(learner, task, Optimizer(Adam{.lr = 1e-2}), 60);
}

int main() { return judge::run(train); }
