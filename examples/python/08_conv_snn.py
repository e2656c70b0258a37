# SPDX-License-Identifier: Apache-2.0
"""A convolutional spiking network reads a digit row by row and names it at the last row."""
import braintrace_cpp as bt
import judge


class Net(bt.nn.Module):
    """Row -> convolution -> LIF per place and channel -> dense -> LIF -> readout."""

    def __init__(self, width, channels, n, n_out):
        super().__init__()
        spike = bt.nn.ReluGrad(alpha=1.0)
        self.conv = bt.nn.Conv1d((width, 1), channels, kernel_size=3, padding="SAME")
        self.first = bt.nn.LIF((width, channels), R=10.0, tau=4.0, spk_fun=spike)
        self.weight = bt.nn.Linear(width * channels + n, n)
        self.second = bt.nn.LIF(n, R=10.0, tau=10.0, spk_fun=spike)
        self.out = bt.nn.LeakyRateReadout(n, n_out, tau=10.0, w_init=bt.nn.init.normal(std=0.1))

    def update(self, x):
        last = self.second.get_spike()
        maps = self.first(self.conv(bt.expand_dims(x, -1)))
        flat = maps.reshape(*x.shape[:-1], -1)
        spikes = self.second(self.weight(bt.concatenate([flat, last], axis=-1)))
        return self.out(spikes), bt.concatenate([flat, spikes], axis=-1)


def train(seed):
    task = bt.tasks.digits(seed=seed)
    model = Net(task.features, 4, 64, task.outputs)
    learner = bt.compile(model, bt.pp_prop, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed, decay_or_rank=0.9)
    return judge.learn(learner, task, bt.Adam(lr=5e-3, clip_norm=1.0), batches=400)


judge.main(train)
