# SPDX-License-Identifier: Apache-2.0
"""What `history = "deep"` buys: inside a window, past credit also crosses layers.

Prints the cosine between online gradients and back-propagation, parameter by parameter, for two GRU
layers; draws them into history.svg in the working folder.
"""
import sys

import braintrace_cpp as bt

STEPS, WINDOW, BATCH = 24, 8, 16


class Net(bt.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.rnn1 = bt.nn.GRUCell(4, n)
        self.rnn2 = bt.nn.GRUCell(n, n)
        self.out = bt.nn.Linear(n, 2)

    def update(self, x):
        return self.out(self.rnn2(self.rnn1(x)))


def gradients(rule, **options):
    """Of one sequence whose target is its input, four steps late."""
    learner = bt.compile(Net(12), rule, bt.zeros((BATCH, 4)), batch_size=BATCH, seed=1,
                         weight_paths="local", **options)
    xs = bt.random_normal(bt.random_key(5), (STEPS, BATCH, 4))
    ys = bt.concatenate([bt.zeros((4, BATCH, 2)), xs[:-4, :, :2]], axis=0)
    return learner.etrace_grad(xs, ys, step_fn=lambda x, y: bt.mse(learner(x), y),
                               window=STEPS if rule is bt.BPTT else WINDOW)


def picture(rows):
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 190" '
             'font-family="sans-serif" font-size="12">',
             '<rect width="560" height="190" fill="white"/>']
    for i, (path, direct, deep) in enumerate(rows):
        y = 10 + 30 * i
        lines.append(f'<text x="10" y="{y + 14}">{path}</text>')
        for value, colour, down in ((direct, "#a0aec0", 0), (deep, "#2b6cb0", 11)):
            width = 400 * (value if value > 0 else 0)
            lines.append(f'<rect x="120" y="{y + down}" width="{width:.1f}" height="10" '
                         f'fill="{colour}"/>')
    return "\n".join([*lines, "</svg>", ""])


def main():
    exact = gradients(bt.BPTT)
    direct = bt.gradient_cosines(exact, gradients(bt.D_RTRL))
    deep = bt.gradient_cosines(exact, gradients(bt.D_RTRL, history="deep"))
    names = [p for p in sorted(exact) if p.startswith("rnn") and p.endswith("weight/weight")]
    rows = [(p.replace("/weight/weight", ""), direct[p], deep[p]) for p in names]
    for row in rows:
        print("{}: direct {:.2f}, deep {:.2f}".format(*row))
    with open("history.svg", "w") as out:
        out.write(picture(rows))
    better = sum(d for _, _, d in rows) > sum(d for _, d, _ in rows) + 0.3
    return 0 if better else 1


sys.exit(main())
