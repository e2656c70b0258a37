# SPDX-License-Identifier: Apache-2.0
"""Memory against the length of the sequence: online rules stay flat, back-propagation grows.

Writes memory.csv and memory.svg (both axes logarithmic) into the working folder.
"""
import math
import sys

import braintrace_cpp as bt

LENGTHS = [10, 30, 100, 300, 1000, 3000, 10000]
RULES = {"D_RTRL": bt.Algorithm("d_rtrl", {}),
         "pp_prop": bt.Algorithm("pp_prop", {"decay_or_rank": 0.9}),
         "BPTT": bt.Algorithm("bptt", {})}
COLOURS = {"D_RTRL": "#2b6cb0", "pp_prop": "#2f855a", "BPTT": "#c53030"}


class Net(bt.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.rnn = bt.nn.GRUCell(8, n)
        self.out = bt.nn.Linear(n, 2)

    def update(self, x):
        return self.out(self.rnn(x))


def place(length, size):
    """Where a point stands in the picture."""
    return 60 + 140 * (math.log10(length) - 1), 280 - 40 * (math.log10(size) - 3)


def picture(table):
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 320" '
             'font-family="sans-serif" font-size="12">',
             '<rect width="600" height="320" fill="white"/>',
             '<text x="250" y="312">steps of the sequence</text>']
    for size, name in ((1e3, "1 kB"), (1e6, "1 MB"), (1e9, "1 GB")):
        lines.append(f'<text x="10" y="{place(10, size)[1] + 4:.1f}">{name}</text>')
    for length in LENGTHS[::2]:
        lines.append(f'<text x="{place(length, 1e3)[0] - 8:.1f}" y="296">{length}</text>')
    for rule, sizes in table.items():
        points = " ".join("{:.1f},{:.1f}".format(*place(t, b)) for t, b in zip(LENGTHS, sizes))
        lines.append(f'<polyline points="{points}" fill="none" stroke-width="2" '
                     f'stroke="{COLOURS[rule]}"/>')
        x, y = place(LENGTHS[-1], sizes[-1])
        lines.append(f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" '
                     f'fill="{COLOURS[rule]}">{rule}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main():
    model = bt.nn.init_all_states(Net(64), batch_size=16)
    graph = bt.compile_etrace_graph(model, bt.zeros((16, 8)), batched=True, weight_paths="local")
    table = {name: [bt.memory_plan(graph, rule, window=t if name == "BPTT" else 0).total_bytes
                    for t in LENGTHS] for name, rule in RULES.items()}
    print("bytes kept for 64 units and 16 samples; steps,", ", ".join(table))
    with open("memory.csv", "w") as out:
        out.write("steps," + ",".join(table) + "\n")
        for row in zip(LENGTHS, *table.values()):
            out.write(",".join(map(str, row)) + "\n")
            print(" ".join(map(str, row)))
    with open("memory.svg", "w") as out:
        out.write(picture(table))
    flat = all(len(set(table[name])) == 1 for name in ("D_RTRL", "pp_prop"))
    return 0 if flat and table["BPTT"][-1] > 100 * table["BPTT"][0] else 1


sys.exit(main())
