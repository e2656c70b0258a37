// SPDX-License-Identifier: Apache-2.0
// ALIF neurons: adapting thresholds bridge a delay that is long beside the membrane's
// memory.
#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

struct Net : nn::Module {
  nn::Linear weight;
  nn::Expon synapse;
  nn::ALIF neuron;
  nn::LeakyRateReadout out;

  Net(std::int64_t n_in, std::int64_t n, std::int64_t n_out)
      : weight(n_in + n, n, {.b_init = {}}),
        synapse({n}, {.tau = 10}),
        neuron({n}, {.R = 3,
                     .tau = 20,
                     .tau_a = 300,
                     .beta = 0.3,
                     .spk_fun = nn::Surrogate("ReluGrad", {{"alpha", 1}})}),
        out(n, n_out, {.tau = 20}) {
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
  const Task task = evidence_task({.cues = 3,
                                   .cue_steps = 10,
                                   .gap_steps = 5,
                                   .delay_steps = 60,
                                   .recall_steps = 10,
                                   .task = {seed}});
  Net model(task.shape().features, 64, task.shape().outputs);
  Learner learner = compile(model, pp_prop{.decay_or_rank = 0.98}, judge::example(task),
                            judge::options(seed));
  return judge::learn(learner, task, Optimizer(Adam{.lr = 5e-3}, {.clip_norm = 1}), 60);
}

int main() { return judge::run(train); }
