# SPDX-License-Identifier: Apache-2.0
"""GIF neurons compare two stimuli across a delay: slow internal currents hold the first one."""
import braintrace_cpp as bt
import judge


class Net(bt.nn.Module):
    def __init__(self, n_in, n, n_out):
        super().__init__()
        self.weight = bt.nn.Linear(n_in + n, n, b_init=None)
        self.synapse = bt.nn.Expon(n, tau=10.0)
        self.neuron = bt.nn.Gif(n, R=5.0, tau=20.0, V_rest=0.0, V_reset=0.0, V_th_inf=1.0,
                                V_th_reset=1.0, V_init=0.0, V_th_init=1.0, k1=1 / 50, R1=1.0,
                                A1=-0.2, spk_fun=bt.nn.ReluGrad(alpha=1.0))
        self.out = bt.nn.LeakyRateReadout(n, n_out, tau=5.0)

    def update(self, x):
        last = self.neuron.get_spike()
        current = self.synapse(self.weight(bt.concatenate([x, last], axis=-1)))
        spikes = self.neuron(current)
        return self.out(spikes), spikes


def train(seed):
    task = bt.tasks.delayed_match(channels=2, steps=40, seed=seed)
    model = Net(task.features, 64, task.outputs)
    learner = bt.compile(model, bt.pp_prop, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed, decay_or_rank=0.97)
    return judge.learn(learner, task, bt.Adam(lr=1e-2), batches=180)


judge.main(train)
