# SPDX-License-Identifier: Apache-2.0
"""A GRU repeats symbols it saw before a delay, trained online and by back-propagation."""
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
    task = bt.tasks.copying(symbols=4, length=2, delay=4, seed=seed)
    model = Net(task.features, 48, task.outputs)
    learner = bt.compile(model, rule, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed)
    return judge.learn(learner, task, bt.Adam(lr=1e-2), batches=150)


judge.main(train, "D_RTRL", "BPTT")
