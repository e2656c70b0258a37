// SPDX-License-Identifier: Apache-2.0
// A learning rule of your own, as a point on the six axes: leaky traces, fixed random
// feedback. No preset has this combination; everything a step needs is derived from it.
#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

Algorithm rule() {
  ETraceConfigFields f;
  f.trace_factorization = TraceFactorization::io_factorized;
  f.temporal_recursion = {TemporalRecursion::scalar_leak, TemporalRecursion::scalar_leak};
  f.decay = {0.9, 0.9};
  f.learning_signal = LearningSignal::random_feedback;
  return algorithm_from_config(ETraceConfig::make(f), {.random_feedback_key = 7});
}

struct Net : nn::Module {
  nn::Linear weight;
  nn::Expon synapse;
  nn::LIF neuron;
  nn::Linear out;

  Net(std::int64_t n_in, std::int64_t n, std::int64_t n_out)
      : weight(n_in + n, n, {.b_init = {}}),
        synapse({n}, {.tau = 10}),
        neuron({n}, {.tau = 20, .spk_fun = nn::Surrogate("ReluGrad", {{"alpha", 1}})}),
        out(n, n_out) {
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
  const Task task = evidence_task({.cues = 1,
                                   .cue_steps = 20,
                                   .gap_steps = 0,
                                   .delay_steps = 10,
                                   .recall_steps = 10,
                                   .task = {seed}});
  Net model(task.shape().features, 64, task.shape().outputs);
  Learner learner = compile(model, rule(), judge::example(task), judge::options(seed));
  return judge::learn(learner, task, Optimizer(Adam{.lr = 5e-3}, {.clip_norm = 1}), 60);
}

int main() { return judge::run(train); }
