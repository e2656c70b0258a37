# SPDX-License-Identifier: Apache-2.0
"""A learning rule of your own, as a point on the six axes: leaky traces, fixed random feedback.

No preset has this combination; everything a step needs is derived from it.
"""
import braintrace_cpp as bt
import judge

RULE = bt.ETraceConfig(trace_factorization="io_factorized",
                       temporal_recursion=("scalar_leak", "scalar_leak"), decay=(0.9, 0.9),
                       learning_signal="random_feedback")


class Net(bt.nn.Module):
    def __init__(self, n_in, n, n_out):
        super().__init__()
        self.weight = bt.nn.Linear(n_in + n, n, b_init=None)
        self.synapse = bt.nn.Expon(n, tau=10.0)
        self.neuron = bt.nn.LIF(n, tau=20.0, spk_fun=bt.nn.ReluGrad(alpha=1.0))
        self.out = bt.nn.Linear(n, n_out)

    def update(self, x):
        last = self.neuron.get_spike()
        current = self.synapse(self.weight(bt.concatenate([x, last], axis=-1)))
        spikes = self.neuron(current)
        return self.out(spikes), spikes


def train(seed):
    task = bt.tasks.evidence(cues=1, cue_steps=20, gap_steps=0, delay_steps=10,
                             recall_steps=10, seed=seed)
    model = Net(task.features, 64, task.outputs)
    learner = bt.compile(model, RULE, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed, random_feedback_key=7)
    return judge.learn(learner, task, bt.Adam(lr=5e-3, clip_norm=1.0), batches=60)


judge.main(train)
