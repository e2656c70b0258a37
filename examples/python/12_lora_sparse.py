# SPDX-License-Identifier: Apache-2.0
"""Fewer weights: inputs through two thin matrices (LoRA), recurrence through fixed sparse wires."""
import braintrace_cpp as bt
import judge


def ring(n, reach):
    """Unit i hears units i - reach ... i + reach."""
    pairs = [((o + d) % n, o) for o in range(n) for d in range(-reach, reach + 1)]
    return bt.coo_structure(n, n, [i for i, _ in pairs], [o for _, o in pairs])


class Net(bt.nn.Module):
    """h' = h + (tanh(lora(x) + sparse(h)) - h) / 2."""

    def __init__(self, n_in, n, n_out):
        super().__init__()
        self.lora = bt.nn.LoRA(n_in, 4, n)
        self.sparse = bt.nn.SparseLinear(ring(n, 2), w_init=bt.nn.init.normal(std=0.5), b_init=0.0)
        self.h = bt.nn.HiddenState(n)
        self.out = bt.nn.Linear(n, n_out)

    def update(self, x):
        h = self.h.value
        self.h.value = 0.5 * h + 0.5 * bt.tanh(self.lora(x) + self.sparse(h))
        return self.out(self.h.value)


def train(seed):
    task = bt.tasks.pattern(steps=30, seed=seed)
    model = Net(task.features, 48, task.outputs)
    learner = bt.compile(model, bt.D_RTRL, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed)
    return judge.learn(learner, task, bt.Adam(lr=5e-3), batches=500)


judge.main(train)
