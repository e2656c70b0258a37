# SPDX-License-Identifier: Apache-2.0
"""SnAp on a ring: a weight's trace follows its influence along sparse wires, n steps far."""
import braintrace_cpp as bt
import judge


def ring(n):
    """Unit i hears itself and its two neighbours."""
    pairs = [((o + d) % n, o) for o in range(n) for d in (-1, 0, 1)]
    return bt.coo_structure(n, n, [i for i, _ in pairs], [o for _, o in pairs])


class Net(bt.nn.Module):
    """h' = tanh(x W + ring(h))."""

    def __init__(self, n_in, n, n_out):
        super().__init__()
        self.inputs = bt.nn.Linear(n_in, n)
        self.ring = bt.nn.SparseLinear(ring(n), w_init=bt.nn.init.normal(std=0.6))
        self.h = bt.nn.HiddenState(n)
        self.out = bt.nn.Linear(n, n_out)

    def update(self, x):
        self.h.value = bt.tanh(self.inputs(x) + self.ring(self.h.value))
        return self.out(self.h.value)


def learner_of(rule, task, seed, **options):
    model = Net(task.features, 24, task.outputs)
    return bt.compile(model, rule, bt.zeros((judge.BATCH, task.features)),
                      batch_size=judge.BATCH, seed=seed, **options)


def gradients(task, seed, rule, **options):
    """Of the untrained network on the first batch."""
    return judge.fit(learner_of(rule, task, seed, **options), task, bt.SGD(lr=0.0), batches=1)


def train(seed):
    task = bt.tasks.pattern(steps=20, seed=seed)
    exact = gradients(task, seed, bt.BPTT)
    near = bt.gradient_cosine(exact, gradients(task, seed, bt.D_RTRL))
    far = [bt.gradient_cosine(exact, gradients(task, seed, bt.SnAp, n=n)) for n in (2, 3)]
    print(f"cosine to BPTT: D_RTRL {near:.2f}, SnAp(2) {far[0]:.2f}, SnAp(3) {far[1]:.2f}")
    learner = learner_of(bt.SnAp, task, seed, n=2)
    return judge.learn(learner, task, bt.Adam(lr=1e-2), batches=100)


judge.main(train)
