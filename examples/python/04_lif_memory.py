# SPDX-License-Identifier: Apache-2.0
"""LIF neurons that remember: were more cues left or right? Learnt online by pp_prop.

Traces of pp_prop take memory in proportion to neurons, not to weights.
"""
import braintrace_cpp as bt
import judge


class Net(bt.nn.Module):
    """Spiking inputs and spikes of the last step -> exponential synapse -> LIF -> readout."""

    def __init__(self, n_in, n, n_out):
        super().__init__()
        self.weight = bt.nn.Linear(n_in + n, n, b_init=None)
        self.synapse = bt.nn.Expon(n, tau=10.0)
        self.neuron = bt.nn.LIF(n, tau=20.0, spk_fun=bt.nn.ReluGrad(alpha=1.0))
        self.out = bt.nn.LeakyRateReadout(n, n_out, tau=20.0)

    def update(self, x):
        last = self.neuron.get_spike()
        current = self.synapse(self.weight(bt.concatenate([x, last], axis=-1)))
        spikes = self.neuron(current)
        return self.out(spikes), spikes


def train(seed):
    task = bt.tasks.evidence(cues=3, cue_steps=10, gap_steps=5, delay_steps=20,
                             recall_steps=10, seed=seed)
    model = Net(task.features, 64, task.outputs)
    learner = bt.compile(model, bt.pp_prop, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed, decay_or_rank=0.97)
    return judge.learn(learner, task, bt.Adam(lr=5e-3), batches=30)


judge.main(train)
