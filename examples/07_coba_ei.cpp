// SPDX-License-Identifier: Apache-2.0
// An excitatory-inhibitory network with conductances: weights keep their sign while they
// learn.
#include "judge.h"

#include "braintrace/nn/nn.h"

using namespace braintrace;

std::unique_ptr<nn::Synapse> expon(std::int64_t n, double tau) {
  return std::make_unique<nn::Expon>(Shape{n}, nn::ExponOptions{.tau = tau});
}

// 80 % of the neurons excite (reversal 2 above threshold), 20 % inhibit (2 below).
struct EINet : nn::Module {
  std::int64_t n_exc, n_inh;
  nn::LIF neuron;
  nn::AlignPost exc, inh;
  nn::SignedWLinear w_feed, w_excite, w_inhibit;
  nn::AlignPostProj feed, excite, inhibit;
  nn::LeakyRateReadout out;

  EINet(std::int64_t n_in, std::int64_t n, std::int64_t n_out)
      : n_exc(4 * n / 5),
        n_inh(n - n_exc),
        neuron({n}, {.tau = 20, .spk_fun = nn::Surrogate("ReluGrad", {{"alpha", 1}})}),
        exc(neuron, expon(n, 5), nn::COBA(3, {.scale = 1}), "exc"),
        inh(neuron, expon(n, 10), nn::COBA(-1, {.scale = 1}), "inh"),
        w_feed(n_in, n, {.w_init = nn::init::uniform(0, 0.1)}),
        w_excite(n_exc, n, {.w_init = nn::init::uniform(0, 0.1)}),
        w_inhibit(n_inh, n, {.w_init = nn::init::uniform(0, 0.1)}),
        feed(w_feed, exc),
        excite(w_excite, exc),
        inhibit(w_inhibit, inh),
        out(n, n_out, {.tau = 20, .w_init = nn::init::normal(0, 0.03)}) {
    add("neuron", neuron);
    add("exc", exc);
    add("inh", inh);
    add("feed", feed);
    add("excite", excite);
    add("inhibit", inhibit);
    add("out", out);
  }

  Values update_all(const Values& in) override {
    const Value last = neuron.get_spike();
    feed(in[0]);
    excite(slice_axis(last, -1, 0, n_exc));
    inhibit(slice_axis(last, -1, n_exc, n_inh));
    const Value spikes = neuron();
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
  EINet model(task.shape().features, 40, task.shape().outputs);
  Learner learner = compile(model, pp_prop{.decay_or_rank = 0.97}, judge::example(task),
                            judge::options(seed));
  return judge::learn(learner, task, Optimizer(Adam{.lr = 5e-3}, {.clip_norm = 1}), 60);
}

int main() { return judge::run(train); }
