# SPDX-License-Identifier: Apache-2.0
"""A sparse spiking network as large as the fruit fly's brain learns online with pp_prop:

    19_whole_brain.py 127400 115 1000     neurons, connections per neuron, steps

Without arguments: a small one, for three seeds. Connections are drawn at random (every neuron
reaches 1/2 to 3/2 of the mean number of others); 80 % of the neurons excite, 20 % inhibit, four
times as strongly. It hears a repeating spike pattern and learns to draw a curve.
"""
import math
import resource
import sys
import time

import braintrace_cpp as bt
import judge
import numpy as np

INPUTS, PERIOD = 200, 50


class Brain(bt.nn.Module):
    def __init__(self, n, degree, seed):
        super().__init__()
        self.feed = bt.nn.SparseLinear(bt.random_structure(INPUTS, n, n // 20, seed=2 * seed + 1),
                                       w_init=bt.nn.init.uniform(0.0, 0.6))
        self.wires = bt.nn.SparseLinear(bt.random_structure(n, n, degree, seed=2 * seed + 2),
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


def train(model, n, steps, seed, told=None):
    """What the last period came to. `told` hears of every period."""
    learner = bt.compile(model, bt.pp_prop, bt.zeros(INPUTS), seed=seed, decay_or_rank=0.9)
    data = [(bt.array(pattern(t)), bt.array([curve(t)])) for t in range(PERIOD)]

    def error(x, y):
        drawn, rate = learner(x)
        return bt.mse(drawn, y), rate

    loss = learner.trace_loss(error, *data[0], has_aux=True)
    optimizer = bt.SGD(lr=0.3 / n)
    for t in range(steps):
        phase = t % PERIOD
        if phase == 0:  # 0.625: mean square of the curve; its mean is 0
            out = judge.Outcome(constant=0.625, rate=0.0)
        if t + 1 < steps:
            value, rate = learner.step_update(*data[phase], loss=loss, optimizer=optimizer)
        else:  # its gradient is looked at, and moves nothing
            value, out.grads, rate = learner.step_grad(*data[phase], loss=loss)
        out.loss += value / PERIOD
        out.rate += float(rate) / PERIOD
        if told and phase + 1 == PERIOD:
            told(t + 1, out)
    return out


def train_small(seed, n=2000, degree=40, steps=2000):
    return train(Brain(n, degree, seed), n, steps, seed)


def train_large(n, degree=40, steps=2000):
    """One network of the size asked for, with its speed and memory."""
    if n < 20 or not 0 < 2 * degree <= n:
        raise ValueError(f"{n} neurons cannot have {degree} connections each: at least 20 neurons, "
                         "at most half as many connections")
    if steps <= 0 or steps % PERIOD:
        raise ValueError(f"steps must be a multiple of {PERIOD}, the length of the pattern, "
                         f"got {steps}")
    model = Brain(n, degree, 0)
    start = time.monotonic()

    def told(step, out):
        synapses = model.wires.weight.value["weight"].size
        if step == PERIOD:
            print(f"{n} neurons, {synapses} synapses")
        speed = step / (time.monotonic() - start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"step {step}: loss {out.loss:.4f}, {100 * out.rate:.2f} % spike", flush=True)
        print(f"  {speed:.1f} steps/s, {speed * synapses:.3g} synapses/s, peak {peak:.0f} MB",
              file=sys.stderr)

    out = train(model, n, steps, 0, told)
    print(out)
    faults = list(out.faults())
    for fault in faults:
        print(f"  FAILED: {fault}")
    return 1 if faults else 0


if len(sys.argv) == 1:
    judge.main(train_small)
try:
    sys.exit(train_large(*map(int, sys.argv[1:])))
except (ValueError, TypeError) as wrong:
    print(f"19_whole_brain: {wrong}\nusage: 19_whole_brain.py [NEURONS [CONNECTIONS [STEPS]]]",
          file=sys.stderr)
    sys.exit(2)
