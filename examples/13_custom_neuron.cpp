// SPDX-License-Identifier: Apache-2.0
// A neuron of your own: two lines of equations, and the compiler derives its traces.
// A resonator: potential V and recovery W turn around each other and fade; a spike resets
// V.
#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

// V' = r (c V - s W) + I, W' = r (s V + c W); spike where V >= 1, then V loses 1.
struct Resonator : nn::Module {
  double r, c, s;
  nn::Surrogate spike{"ReluGrad", {{"alpha", 1}}};
  HiddenState V, W;

  explicit Resonator(std::int64_t n, double period = 200, double memory = 20)
      : V({n}), W({n}) {
    const double angle = 2 * 3.14159265 / period;
    r = 1 - 1 / memory;
    c = 1 - angle * angle / 2;
    s = angle;
    add("V", V);
    add("W", W);
  }

  Value get_spike() { return spike(V.value() - 1); }

  Value update(Value current) override {
    const Value v = V.value() - get_spike(), w = W.value();
    V.set(r * (c * v - s * w) + current);
    W.set(r * (s * v + c * w));
    return get_spike();
  }
};

struct Net : nn::Module {
  nn::Linear weight;
  Resonator neuron;
  nn::LeakyRateReadout out;

  Net(std::int64_t n_in, std::int64_t n, std::int64_t n_out)
      : weight(n_in + n, n, {.b_init = {}}),
        neuron(n),
        out(n, n_out, {.tau = 20, .w_init = nn::init::normal(0, 0.03)}) {
    add("weight", weight);
    add("neuron", neuron);
    add("out", out);
  }

  Values update_all(const Values& in) override {
    const Value last = neuron.get_spike();
    const Value spikes = neuron(weight(concat({in[0], last})));
    return {out(spikes), spikes};
  }
};

judge::Outcome train(std::uint64_t seed) {
  const Task task = evidence_task({.cues = 3,
                                   .cue_steps = 10,
                                   .gap_steps = 5,
                                   .delay_steps = 10,
                                   .recall_steps = 10,
                                   .task = {seed}});
  Net model(task.shape().features, 64, task.shape().outputs);
  Learner learner = compile(model, pp_prop{.decay_or_rank = 0.95}, judge::example(task),
                            judge::options(seed));
  const OptimizerOptions steady{.clip_norm = 1, .schedule = schedule::cosine(5e-3, 80)};
  return judge::learn(learner, task, Optimizer(Adam{}, steady), 80);
}

int main() { return judge::run(train); }
