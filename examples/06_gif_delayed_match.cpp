// SPDX-License-Identifier: Apache-2.0
// GIF neurons compare two stimuli across a delay: slow internal currents hold the first
// one.
#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

nn::GifOptions gif() {
  nn::GifOptions o;
  o.R = 5;
  o.tau = 20;
  o.V_rest = o.V_reset = 0;
  o.V_th_inf = o.V_th_reset = 1;
  o.V_init = constant_init(0);
  o.V_th_init = constant_init(1);
  o.k1 = 1.0 / 50;  // the internal current fades over 50 ms
  o.R1 = 1;
  o.A1 = -0.2;
  o.spk_fun = nn::Surrogate("ReluGrad", {{"alpha", 1}});
  return o;
}

struct Net : nn::Module {
  nn::Linear weight;
  nn::Expon synapse;
  nn::Gif neuron;
  nn::LeakyRateReadout out;

  Net(std::int64_t n_in, std::int64_t n, std::int64_t n_out)
      : weight(n_in + n, n, {.b_init = {}}),
        synapse({n}, {.tau = 10}),
        neuron({n}, gif()),
        out(n, n_out, {.tau = 5}) {
    add("weight", weight);
    add("synapse", synapse);
    add("neuron", neuron);
    add("out", out);
  }

  Values update_all(const Values& in) override {
    const Value last = neuron.get_spike();
    const Value current = synapse(weight(concat({in[0], last})));
    const Value spikes = neuron(current);
    return {out(spikes), spikes};
  }
};

judge::Outcome train(std::uint64_t seed) {
  const Task task = delayed_match_task({.channels = 2, .steps = 40, .task = {seed}});
  Net model(task.shape().features, 64, task.shape().outputs);
  Learner learner = compile(model, pp_prop{.decay_or_rank = 0.97}, judge::example(task),
                            judge::options(seed));
  return judge::learn(learner, task, Optimizer(Adam{.lr = 1e-2}), 180);
}

int main() { return judge::run(train); }
