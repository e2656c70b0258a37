# SPDX-License-Identifier: Apache-2.0
"""A trainable op of your own: one gain per neuron, with an eligibility trace.

Here the op is an einsum, trainable like every product of the library; the C++ twin writes the same
op from its rules. The recurrent weights are random and stay; only gains and the readout learn.
"""
import braintrace_cpp as bt
import judge


def gain(x, weight):
    """y[b, i] = x[b, i] weight[i]."""
    return bt.einsum("bi,i->bi", x, weight)


class Reservoir(bt.nn.Module):
    """h' = tanh(gain * ([x, h] W)) with W fixed."""

    def __init__(self, n_in, n, n_out, seed):
        super().__init__()
        self.fixed = bt.random_normal(bt.random_key(100 + seed), (n_in + n, n)) * (1.5 / n**0.5)
        self.weight = bt.ParamState(bt.ones(n))
        self.h = bt.nn.HiddenState(n)
        self.out = bt.nn.Linear(n, n_out)

    def update(self, x):
        drive = bt.dot(bt.concatenate([x, self.h.value], axis=-1), self.fixed)
        self.h.value = bt.tanh(gain(drive, self.weight.value))
        return self.out(self.h.value)


def train(seed):
    task = bt.tasks.pattern(steps=20, seed=seed)
    model = Reservoir(task.features, 64, task.outputs, seed)
    learner = bt.compile(model, bt.D_RTRL, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed)
    outcome = judge.learn(learner, task, bt.Adam(lr=1e-2), batches=80)
    moved = float(bt.abs(model.weight.value - 1).max())
    relations = len(learner.graph.hidden_param_op_relations)
    print(f"traced: {relations} op, gains moved by up to {moved:.2f}")
    return outcome


judge.main(train)
