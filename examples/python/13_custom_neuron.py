# SPDX-License-Identifier: Apache-2.0
"""A neuron of your own: two lines of equations, and the compiler derives its traces.

A resonator: potential V and recovery W turn around each other and fade; a spike resets V.
"""
import braintrace_cpp as bt
import judge


class Resonator(bt.nn.Module):
    """V' = r (c V - s W) + I, W' = r (s V + c W); spike where V >= 1, then V loses 1."""

    def __init__(self, n, period=200.0, memory=20.0):
        super().__init__()
        angle, self.r = 2 * 3.14159265 / period, 1 - 1 / memory
        self.c, self.s = 1 - angle * angle / 2, angle
        self.spike = bt.nn.ReluGrad(alpha=1.0)
        self.V = bt.nn.HiddenState(n)
        self.W = bt.nn.HiddenState(n)

    def get_spike(self):
        return self.spike(self.V.value - 1)

    def update(self, current):
        V, W = self.V.value - self.get_spike(), self.W.value
        self.V.value = self.r * (self.c * V - self.s * W) + current
        self.W.value = self.r * (self.s * V + self.c * W)
        return self.get_spike()


class Net(bt.nn.Module):
    def __init__(self, n_in, n, n_out):
        super().__init__()
        self.weight = bt.nn.Linear(n_in + n, n, b_init=None)
        self.neuron = Resonator(n)
        self.out = bt.nn.LeakyRateReadout(n, n_out, tau=20.0, w_init=bt.nn.init.normal(std=0.03))

    def update(self, x):
        last = self.neuron.get_spike()
        spikes = self.neuron(self.weight(bt.concatenate([x, last], axis=-1)))
        return self.out(spikes), spikes


def train(seed):
    task = bt.tasks.evidence(cues=3, cue_steps=10, gap_steps=5, delay_steps=10,
                             recall_steps=10, seed=seed)
    model = Net(task.features, 64, task.outputs)
    learner = bt.compile(model, bt.pp_prop, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed, decay_or_rank=0.95)
    steady = bt.Adam(schedule=bt.schedule.cosine(5e-3, 80), clip_norm=1.0)
    return judge.learn(learner, task, steady, batches=80)


judge.main(train)
