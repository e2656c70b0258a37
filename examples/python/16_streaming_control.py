# SPDX-License-Identifier: Apache-2.0
"""A controller that learns while it acts: weights move at every step, nothing is stored.

A vehicle in an unknown wind must keep a changing speed. The network sees wanted and present speed
and sets the thrust; the loss is the speed error of the next step.
"""
import math

import braintrace_cpp as bt
import judge

STEPS, THRUST = 3000, 0.3


class Controller(bt.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.rnn = bt.nn.GRUCell(2, n)
        self.out = bt.nn.Linear(n, 1)

    def update(self, x):
        return self.out(self.rnn(x))


def wanted(t):
    return math.sin(t / 20) + 0.5 * math.sin(t / 7)


def drift(speed, t):
    """Where the vehicle goes without thrust: drag and a slow wind."""
    return 0.9 * speed + 0.3 * math.sin(t / 50)


def error_of_constant(thrust, seed):
    """Mean squared error of the same ride with one thrust for all steps."""
    speed, total = 0.0, 0.0
    for t in range(1000 * seed, 1000 * seed + STEPS):
        speed = drift(speed, t) + THRUST * thrust
        total += (speed - wanted(t)) ** 2 / STEPS
    return total


def train(seed):
    model = Controller(32)
    learner = bt.compile(model, bt.D_RTRL, bt.zeros(2), seed=seed, weight_paths="local")

    def error(x, drifted):
        thrust = learner(x)
        return bt.mean((drifted + THRUST * thrust - x[:1]) ** 2), thrust

    loss = learner.trace_loss(error, bt.zeros(2), bt.zeros(1), has_aux=True)
    adam, out, speed = bt.Adam(lr=3e-3), judge.Outcome(), 0.0
    for t in range(1000 * seed, 1000 * seed + STEPS):
        drifted = drift(speed, t)
        value, out.grads, thrust = learner.step_grad([wanted(t), speed], [drifted], loss=loss)
        adam.update(model, out.grads)
        out.loss += value / STEPS
        speed = drifted + THRUST * float(thrust[0])
    out.constant = min(error_of_constant(i / 10, seed) for i in range(-20, 21))
    return out


judge.main(train)
