# SPDX-License-Identifier: Apache-2.0
"""A sparse spiking network as large as the fruit fly's brain learns online with pp_prop:

    19_whole_brain.py 127400 115 400      neurons, connections per neuron, steps

Without arguments: a small one. Connections are drawn at random (every neuron reaches 1/2 to 3/2 of
the mean number of others); 80 % of the neurons excite, 20 % inhibit, four times as strongly. It
hears a repeating spike pattern and learns to draw a curve.
"""
import math
import resource
import sys
import time

import braintrace_cpp as bt
import numpy as np

INPUTS, PERIOD = 200, 50


class Brain(bt.nn.Module):
    def __init__(self, n, degree):
        super().__init__()
        self.feed = bt.nn.SparseLinear(bt.random_structure(INPUTS, n, n // 20, seed=1),
                                       w_init=bt.nn.init.uniform(0.0, 0.6))
        self.wires = bt.nn.SparseLinear(bt.random_structure(n, n, degree, seed=2),
                                        w_init=bt.nn.init.uniform(0.0, 2 / degree))
        self.synapse = bt.nn.Expon(n, tau=5.0)
        self.neuron = bt.nn.LIF(n, tau=20.0, spk_fun=bt.nn.ReluGrad(alpha=1.0))
        self.out = bt.nn.LeakyRateReadout(n, 1, tau=10.0, w_init=bt.nn.init.normal(0.0, 1e-3))
        self.sign = np.ones(n, np.float32)  # by neuron: what its spikes do to others
        self.sign[4 * n // 5:] = -4

    def update(self, x):
        heard = self.feed(x) + self.wires(self.neuron.get_spike() * self.sign)
        spikes = self.neuron(self.synapse(heard))
        return self.out(spikes), bt.mean(spikes)


def curve(t):
    phase = 2 * math.pi * (t % PERIOD) / PERIOD
    return math.sin(phase) + 0.5 * math.sin(2 * phase)


def pattern(t):
    """One input in ten spikes, always the same at the same time of the period."""
    i = np.arange(INPUTS)
    return ((i * i + 3 * i * t + 7 * t * t) % 101 < 10).astype(np.float32)


def main(n=2000, degree=40, steps=1000):
    model = Brain(n, degree)
    learner = bt.compile(model, bt.pp_prop, bt.zeros(INPUTS), seed=1, decay_or_rank=0.9)
    synapses = model.wires.weight.value["weight"].size
    print(f"{n} neurons, {synapses} synapses")

    data = [(bt.array(pattern(t)), bt.array([curve(t)])) for t in range(PERIOD)]

    def error(x, y):
        drawn, rate = learner(x)
        return bt.mse(drawn, y), rate

    loss = learner.trace_loss(error, *data[0], has_aux=True)
    optimizer = bt.SGD(lr=0.3 / n)
    constant = 0.625  # mean square of the curve: its mean is 0
    total, rates, start = 0.0, 0.0, time.monotonic()
    for t in range(steps):
        value, grads, rate = learner.step_grad(*data[t % PERIOD], loss=loss)
        optimizer.update(model, grads)
        total += value / PERIOD
        rates += float(rate) / PERIOD
        if (t + 1) % PERIOD:
            continue
        speed = (t + 1) / (time.monotonic() - start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"step {t + 1}: loss {total:.4f} (constant {constant:.4f}), {100 * rates:.2f} % spike")
        print(f"  {speed:.1f} steps/s, {speed * synapses:.3g} synapses/s, peak {peak:.0f} MB",
              file=sys.stderr)
        if t + 1 == steps:
            return 0 if total < 0.5 * constant else 1
        total = rates = 0.0
    return 1


sys.exit(main(*map(int, sys.argv[1:])))
