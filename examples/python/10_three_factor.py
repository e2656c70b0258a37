# SPDX-License-Identifier: Apache-2.0
"""Reward learning with three factors: input, chance of the neuron's own spike, late reward.

Neurons that fire at random vote for one of two actions. Their eligibility trace is the gradient of
the log-probability of what they did; the reward comes four steps later, one number for all.
"""
import braintrace_cpp as bt
import judge

CUES, INPUTS, NEURONS, TRIALS, TESTED = 4, 20, 40, 60, 20


class Voters(bt.nn.Module):
    """Spikes with probability sigmoid(W x - 1.5); h sums log-probabilities, with a leak."""

    def __init__(self):
        super().__init__()
        self.weight = bt.nn.Linear(INPUTS, NEURONS, b_init=None)
        self.h = bt.nn.HiddenState(NEURONS)

    def update(self, x, noise):
        u = self.weight(x) - 1.5
        spikes = bt.stop_gradient(bt.astype(noise < bt.sigmoid(u), "f32"))
        log_p = spikes * bt.log_sigmoid(u) + (1 - spikes) * bt.log_sigmoid(-u)
        self.h.value = 0.95 * self.h.value + log_p
        return spikes


def trial(learner, loss, key, cues):
    """Three steps of a cue, four of waiting, then the reward. (gradients, hits, mean rate)"""
    choice = bt.random_uniform(bt.random_fold_in(key, 0), (judge.BATCH,))
    cue = bt.astype(choice * CUES, "i32")
    x, nothing = bt.take(cues, cue, 0), bt.zeros((judge.BATCH, INPUTS))
    judge.start_again(learner)
    votes, rate = bt.zeros((judge.BATCH, 2)), 0.0
    for t in range(7):
        noise = bt.random_uniform(bt.random_fold_in(key, t + 1), (judge.BATCH, NEURONS))
        spikes = learner.step(x if t < 3 else nothing, noise)
        if t < 3:
            votes = votes + spikes.reshape(judge.BATCH, 2, -1).sum(axis=2)
            rate += float(spikes.mean()) / 3
    # Even cues want action 0, odd ones action 1.
    right = bt.astype(bt.argmax(votes, axis=1) == cue - cue // 2 * 2, "f32")
    reward = right - right.mean()
    learner.set_modulator(-reward.reshape(-1, 1, 1) / judge.BATCH)
    _, grads = learner.step_grad(nothing, noise, loss=loss)
    return grads, int(right.sum()), rate


def train(seed):
    key = bt.random_key(seed)
    cues = bt.astype(bt.random_uniform(bt.random_fold_in(key, 1000), (CUES, INPUTS)) < 0.3, "f32")
    model = Voters()
    examples = bt.zeros((judge.BATCH, INPUTS)), bt.zeros((judge.BATCH, NEURONS))
    learner = bt.compile(model, bt.ThreeFactor, *examples, batch_size=judge.BATCH, seed=seed)
    learner.set_modulator(bt.zeros((judge.BATCH, 1, 1)))
    loss = learner.trace_loss(lambda x, noise: learner(x, noise).mean(), *examples)
    adam, out = bt.Adam(lr=5e-2), judge.Outcome(rate=0.0)
    for i in range(TRIALS):
        grads, hits, rate = trial(learner, loss, bt.random_fold_in(key, i), cues)
        adam.update(model, grads)
        out.grads = out.grads or grads  # later everyone is right, and nothing is left to learn
        if i >= TRIALS - TESTED:
            out.hits += hits
            out.trials += judge.BATCH
            out.rate += rate / TESTED
    return out


judge.main(train)
