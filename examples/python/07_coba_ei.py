# SPDX-License-Identifier: Apache-2.0
"""An excitatory-inhibitory network with conductances: weights keep their sign while they learn."""
import braintrace_cpp as bt
import judge


class EINet(bt.nn.Module):
    """80 % of the neurons excite (reversal 2 above threshold), 20 % inhibit (2 below)."""

    def __init__(self, n_in, n, n_out):
        super().__init__()
        n_exc = 4 * n // 5
        weights = bt.nn.init.uniform(0.0, 0.1)
        self.n_exc = n_exc
        self.neuron = bt.nn.LIF(n, tau=20.0, R=1.0, spk_fun=bt.nn.ReluGrad(alpha=1.0))
        self.exc = bt.nn.AlignPost(self.neuron, bt.nn.Expon(n, tau=5.0),
                                   bt.nn.COBA(3.0, scale=1.0), label="exc")
        self.inh = bt.nn.AlignPost(self.neuron, bt.nn.Expon(n, tau=10.0),
                                   bt.nn.COBA(-1.0, scale=1.0), label="inh")
        self.feed = bt.nn.AlignPostProj(bt.nn.SignedWLinear(n_in, n, w_init=weights), self.exc)
        self.excite = bt.nn.AlignPostProj(
            bt.nn.SignedWLinear(n_exc, n, w_init=weights), self.exc)
        self.inhibit = bt.nn.AlignPostProj(
            bt.nn.SignedWLinear(n - n_exc, n, w_init=weights), self.inh)
        self.out = bt.nn.LeakyRateReadout(n, n_out, tau=20.0,
                                          w_init=bt.nn.init.normal(std=0.03))

    def update(self, x):
        last = self.neuron.get_spike()
        self.feed(x)
        self.excite(last[..., : self.n_exc])
        self.inhibit(last[..., self.n_exc:])
        spikes = self.neuron()
        return self.out(spikes), spikes


def train(seed):
    task = bt.tasks.evidence(cues=3, cue_steps=10, gap_steps=5, delay_steps=10,
                             recall_steps=10, seed=seed)
    model = EINet(task.features, 40, task.outputs)
    learner = bt.compile(model, bt.pp_prop, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed, decay_or_rank=0.97)
    return judge.learn(learner, task, bt.Adam(lr=5e-3, clip_norm=1.0), batches=60)


judge.main(train)
