# SPDX-License-Identifier: Apache-2.0
"""A GRU learns to integrate its input, online (D_RTRL) and by back-propagation (BPTT)."""
import braintrace_cpp as bt
import judge


class Net(bt.nn.Module):
    def __init__(self, n_in, n, n_out):
        super().__init__()
        self.rnn = bt.nn.GRUCell(n_in, n)
        self.out = bt.nn.Linear(n, n_out)

    def update(self, x):
        return self.out(self.rnn(x))


def train(seed, rule):
    task = bt.tasks.integrator(seed=seed)
    model = Net(task.features, 32, task.outputs)
    learner = bt.compile(model, rule, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed)
    return judge.learn(learner, task, bt.Adam(lr=1e-2), batches=60)


judge.main(train, "D_RTRL", "BPTT")
