// SPDX-License-Identifier: Apache-2.0
// Fewer weights: inputs through two thin matrices (LoRA), recurrence through fixed sparse
// wires.
#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

// Unit i hears units i - reach ... i + reach.
SparseStructure ring(std::int64_t n, std::int64_t reach) {
  Ints rows, cols;
  for (std::int64_t o = 0; o < n; ++o) {
    for (std::int64_t d = -reach; d <= reach; ++d) {
      rows.push_back((o + d + n) % n);
      cols.push_back(o);
    }
  }
  return coo_structure(n, n, rows, cols);
}

// h' = h + (tanh(lora(x) + sparse(h)) - h) / 2.
struct Net : nn::Module {
  nn::LoRA lora;
  nn::SparseLinear sparse;
  HiddenState h;
  nn::Linear out;

  Net(std::int64_t n_in, std::int64_t n, std::int64_t n_out)
      : lora(n_in, 4, n),
        sparse(ring(n, 2),
               {.w_init = nn::init::normal(0, 0.5), .b_init = constant_init(0)}),
        h({n}),
        out(n, n_out) {
    add("lora", lora);
    add("sparse", sparse);
    add("h", h);
    add("out", out);
  }

  Value update(Value x) override {
    const Value last = h.value();
    h.set(0.5 * last + 0.5 * tanh(lora(x) + sparse(last)));
    return out(h.value());
  }
};

judge::Outcome train(std::uint64_t seed) {
  const Task task = pattern_task({.steps = 30, .task = {seed}});
  Net model(task.shape().features, 48, task.shape().outputs);
  Learner learner = compile(model, D_RTRL{}, judge::example(task), judge::options(seed));
  return judge::learn(learner, task, Optimizer(Adam{.lr = 5e-3}), 500);
}

int main() { return judge::run(train); }
