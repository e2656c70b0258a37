# SPDX-License-Identifier: Apache-2.0
"""A character-level language model, trained online: which character comes next?"""
import braintrace_cpp as bt
import judge


class Net(bt.nn.Module):
    def __init__(self, n_in, n, n_out):
        super().__init__()
        self.rnn = bt.nn.GRUCell(n_in, n)
        self.out = bt.nn.Linear(n, n_out)

    def update(self, x):
        return self.out(self.rnn(x))


def story(sentences):
    """Small sentences, drawn by a linear congruence so that every language writes the same."""
    words = [["the cat", "a dog", "my friend", "the old bird"],
             ["sees", "follows", "likes", "hears"],
             ["the moon", "a small mouse", "the river", "an apple"]]
    text, draw = "", 1
    for _ in range(sentences):
        for i, choices in enumerate(words):
            draw = (draw * 1103515245 + 12345) % 2**31
            text += choices[draw // 65536 % 4] + (". " if i == 2 else " ")
    return text


def train(seed):
    task = bt.tasks.text(text=story(400), seed=seed)
    model = Net(task.features, 64, task.outputs)
    learner = bt.compile(model, bt.D_RTRL, bt.zeros((judge.BATCH, task.features)),
                         batch_size=judge.BATCH, seed=seed)
    return judge.learn(learner, task, bt.Adam(lr=1e-2), batches=60)


judge.main(train)
