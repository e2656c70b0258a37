# SPDX-License-Identifier: Apache-2.0
"""ALIF neurons: adapting thresholds bridge a delay that is long beside the membrane's memory."""
import braintrace_cpp as bt
import judge


class Net(bt.nn.Module):
    def __init__(self, n_in, n, n_out):
        super().__init__()
        self.weight = bt.nn.Linear(n_in + n, n, b_init=None)
        self.synapse = bt.nn.Expon(n, tau=10.0)
        self.neuron = bt.nn.ALIF(n, R=3.0, tau=20.0, tau_a=300.0, beta=0.3,
                                 spk_fun=bt.nn.ReluGrad(alpha=1.0))
        self.out = bt.nn.LeakyRateReadout(n, n_out, tau=20.0)

    def update(self, x):
        last = self.neuron.get_spike()
        current = self.synapse(self.weight(bt.concatenate([x, last], axis=-1)))
        spikes = self.neuron(current)
        return self.out(spikes), spikes


def train(seed):
    task = bt.tasks.evidence(cues=3, cue_steps=10, gap_steps=5, delay_steps=60,
                             recall_steps=10, seed=seed)
    model = Net(task.features, 64, task.outputs)
    learner = bt.compile(model, bt.pp_prop, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed, decay_or_rank=0.98)
    return judge.learn(learner, task, bt.Adam(lr=5e-3, clip_norm=1.0), batches=60)


judge.main(train)
