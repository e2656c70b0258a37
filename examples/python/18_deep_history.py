# SPDX-License-Identifier: Apache-2.0
"""What `history = "deep"` buys: inside a window, past credit also crosses layers.

Prints the cosine between online gradients and back-propagation, weight by weight, for two GRU
layers, as the mean over five seeds; draws them into history.svg in the working folder. Passes when
deep history is closer for every weight of the first layer and for both reset gates.
"""
import sys

import braintrace_cpp as bt

STEPS, WINDOW, BATCH, SEEDS = 24, 8, 16, 5


class Net(bt.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.rnn1 = bt.nn.GRUCell(4, n)
        self.rnn2 = bt.nn.GRUCell(n, n)
        self.out = bt.nn.Linear(n, 2)

    def update(self, x):
        return self.out(self.rnn2(self.rnn1(x)))


def gradients(seed, rule, **options):
    """Of one sequence whose target is its input, four steps late."""
    learner = bt.compile(Net(12), rule, bt.zeros((BATCH, 4)), batch_size=BATCH, seed=seed,
                         weight_paths="local", **options)
    xs = bt.random_normal(bt.random_key(100 + seed), (STEPS, BATCH, 4))
    ys = bt.concatenate([bt.zeros((4, BATCH, 2)), xs[:-4, :, :2]], axis=0)
    return learner.etrace_grad(xs, ys, step_fn=lambda x, y: bt.mse(learner(x), y),
                               window=STEPS if rule is bt.BPTT else WINDOW)


def mean(values):
    return sum(values) / len(values)


# ---- the picture: two bars per weight, a dot per seed

LEFT, TOP, BAR, PITCH, LENGTH = 90, 78, 13, 40, 480
GREY, BLUE, INK = "#b0bac8", "#2b6cb0", "#1f2933"


def text(x, y, anchor, words, size=12):
    return (f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{INK}">{words}</text>\n')


def box(x, y, width, colour):
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>\n'


def bar(values, y, colour):
    out = box(LEFT, y, LENGTH * max(mean(values), 0.0), colour)
    for v in values:
        out += (f'<circle cx="{LEFT + LENGTH * max(v, 0.0):.1f}" cy="{y + BAR / 2:.1f}" r="2.5" '
                f'fill="white" stroke="{INK}"/>\n')
    return out + text(LEFT + LENGTH + 10, y + BAR - 2, "start", f"{mean(values):.2f}", 11)


def axis(bottom):
    out = ""
    for i in range(5):
        x = LEFT + LENGTH * i / 4
        out += (f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" '
                'stroke="#d9dee5"/>\n')
        out += text(x, bottom + 16, "middle", f"{i / 4:.2f}")
    return out + text(LEFT + LENGTH / 2, bottom + 36, "middle",
                      "cosine between the online gradient and that of back-propagation")


def picture(rows):
    bottom = TOP + PITCH * len(rows)
    out = (f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{bottom + 50}" '
           f'viewBox="0 0 640 {bottom + 50}" font-family="sans-serif">\n'
           f'<rect width="640" height="{bottom + 50}" fill="white"/>\n')
    out += text(LEFT, 24, "start", "Two GRU layers, input back after 4 steps", 15)
    out += box(LEFT, 40, 22, GREY) + text(LEFT + 28, 51, "start", "history = direct")
    out += box(LEFT + 140, 40, 22, BLUE)
    out += text(LEFT + 168, 51, "start", "history = deep, windows of 8 steps")
    out += text(LEFT + LENGTH + 30, 24, "end", "bars: mean, dots: 5 seeds", 11)
    out += axis(bottom)
    for i, (name, (direct, deep)) in enumerate(rows.items()):
        y = TOP + PITCH * i
        out += text(LEFT - 10, y + BAR + 5, "end", name)
        out += bar(direct, y, GREY) + bar(deep, y + BAR + 1, BLUE)
    return out + "</svg>\n"


def main():
    rows = {}
    for seed in range(1, SEEDS + 1):
        exact = gradients(seed, bt.BPTT)
        direct = bt.gradient_cosines(exact, gradients(seed, bt.D_RTRL))
        deep = bt.gradient_cosines(exact, gradients(seed, bt.D_RTRL, history="deep"))
        for path in sorted(exact):
            if path.startswith("rnn") and path.endswith("/weight/weight"):
                row = rows.setdefault(path.replace("/weight/weight", ""), ([], []))
                row[0].append(direct[path])
                row[1].append(deep[path])
    passes = True
    for name, (direct, deep) in rows.items():
        print(f"{name}: direct {mean(direct):.2f}, deep {mean(deep):.2f}")
        if name.startswith("rnn1") or name.endswith("Wr"):
            passes = passes and mean(deep) > mean(direct)
    with open("history.svg", "w") as out:
        out.write(picture(rows))
    return 0 if passes else 1


sys.exit(main())
