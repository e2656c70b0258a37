# SPDX-License-Identifier: Apache-2.0
"""What the examples share: a loop over the batches of a task, and the verdict on what was learnt.

A model returns its scores, or (scores, spikes). An example passes when, for three seeds, it ends
clearly better than the best constant, its neurons fire and every parameter has a gradient.
"""
import math
import os
import sys
from dataclasses import dataclass, field

import braintrace_cpp as bt

# Seeds 0, 1, 2; from JUDGE_FIRST_SEED on when it is set, to judge settings on seeds they were not
# chosen for.
FIRST_SEED = int(os.environ.get("JUDGE_FIRST_SEED", "0"))
SEEDS = range(FIRST_SEED, FIRST_SEED + 3)
BATCH = 32


@dataclass
class Outcome:
    """What one seed came to: a loss beside that of the best constant, or hits beside chance."""

    loss: float = 0.0
    constant: float = 0.0
    hits: int = 0
    trials: int = 0
    chance: float = 0.5
    rate: float | None = None  # share of neurons that spike in a step
    grads: dict = field(default_factory=dict)

    def faults(self):
        if self.trials:
            error = math.sqrt(self.chance * (1 - self.chance) / self.trials)
            if not self.hits / self.trials > self.chance + 3 * error:
                yield "not above chance by 3 standard errors"
        elif not self.loss < 0.7 * self.constant:
            yield "the loss is not below 0.7 of the best constant's"
        if self.rate is not None and not 0.01 <= self.rate <= 0.4:
            yield "neurons do not fire between 1 and 40 % of the time"
        for path, g in self.grads.items():
            if not 0 < float(bt.abs(g).max()) < math.inf:
                yield f"no gradient for {path}"

    def __str__(self):
        text = (f"{self.hits} of {self.trials} right, chance {self.chance:.2f}" if self.trials
                else f"loss {self.loss:.4f}, constant {self.constant:.4f}")
        return text if self.rate is None else f"{text}, firing {100 * self.rate:.1f} %"


def start_again(learner):
    """Hidden states and traces to zero; weights stay."""
    bt.nn.init_all_states(learner.model, batch_size=BATCH)
    learner.reset_state()


def loss_of(task):
    """The task's loss of scores and targets."""
    return bt.mse if task.loss == "mse" else bt.softmax_cross_entropy


def scores_of(output):
    return output[0] if isinstance(output, tuple) else output


def fit(learner, task, optimizer, batches):
    """Trains on `batches` batches; returns the last gradients."""
    loss = loss_of(task)
    for i in range(batches):
        data = task.batch(BATCH, first=i * BATCH)
        start_again(learner)
        grads = learner.etrace_grad(
            data.inputs, data.targets, mask=task.mask, carry_traces=False,
            step_fn=lambda x, y: loss(scores_of(learner(x)), y))
        optimizer.update(learner.model, grads)
    return grads


def evaluate(learner, task, batches=4):
    """Loss over the scored steps of unseen samples, beside the best constant's."""
    loss, out = loss_of(task), Outcome()
    out.constant = task.baseline(task.batch(BATCH * batches, test=True))[0]
    scored = [t for t, m in enumerate(task.mask) if m > 0]
    for i in range(batches):
        data = task.batch(BATCH, first=i * BATCH, test=True)
        start_again(learner)
        result = learner.etrace_evolve(data.inputs, return_outputs=True)
        scores, targets = (bt.take(v, scored, 0) for v in (scores_of(result), data.targets))
        out.loss += float(loss(scores, targets)) / batches
        if isinstance(result, tuple):
            out.rate = (out.rate or 0) + float(bt.mean(result[1])) / batches
    return out


def learn(learner, task, optimizer, batches):
    """fit, then evaluate."""
    grads = fit(learner, task, optimizer, batches)
    out = evaluate(learner, task)
    out.grads = grads
    return out


def main(train, *rules):
    """Runs `train(seed)`, or `train(seed, rule)` for each rule, for every seed; prints the
    outcomes and leaves with 0 or 1."""
    bad = 0
    for rule in rules or [None]:
        for seed in SEEDS:
            outcome = train(seed, rule) if rule else train(seed)
            print(f"{rule + ', ' if rule else ''}seed {seed}: {outcome}", flush=True)
            for fault in outcome.faults():
                print(f"  FAILED: {fault}")
                bad += 1
    sys.exit(1 if bad else 0)
