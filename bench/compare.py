#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times braintrace 0.2.6 (PyPI) and this library on the same models and sizes, in turn.

    python3 bench/compare.py            # a few minutes
    python3 bench/compare.py --full     # all rows of the table, more rounds
    python3 bench/compare.py --case lstm:d_rtrl:128:16:100:50 --case alif:eprop:200:8:50:1:online
                                        # rows of your own

The original is installed into its own environment (build/compare-env) on the first run. Before
anything is timed, gradients are compared: ours in compat mode with the original's, and our default
mode at one step with our own back-propagation. CPU times hardly change when other programs run on
the machine; elapsed times do. Back-propagation through time in jitted JAX, and in PyTorch where
that environment has it (--torch installs it), stands beside (rivals.py).
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import calls
import rivals
from original import RULES, Original

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "compare-env"
SECONDS_A_ROUND = 0.5  # of each side; a single short run says more about the machine than about us


@dataclass
class Case:
    model: str
    n: int
    batch: int
    algorithm: str
    steps: int
    window: int
    full: bool = False  # only with --full
    mode: str = "window"
    layers: int = 1

    @property
    def spiking(self):
        return self.model in ("lif", "alif")

    @property
    def n_in(self):
        return 100 if self.spiking else 10

    @property
    def text(self):
        kind = self.mode if self.mode != "window" else (
            "one window" if self.window >= self.steps else f"carried, {self.window}")
        layers = f" {self.layers} layers" if self.layers > 1 else ""
        return f"{self.model} {self.algorithm} N={self.n} B={self.batch}{layers}, {kind}"


def case_of(text):
    """MODEL:RULE:N:BATCH:STEPS:WINDOW[:MODE[:LAYERS]] as a case."""
    words = text.split(":")
    models = ("gru", "rnn", "lstm", "lif", "alif", "conv")
    if not 6 <= len(words) <= 8:
        raise argparse.ArgumentTypeError(
            f"'{text}' has {len(words)} parts; MODEL:RULE:N:BATCH:STEPS:WINDOW[:MODE[:LAYERS]]")
    if words[0] not in models or words[1] not in RULES:
        raise argparse.ArgumentTypeError(
            f"'{text}': the model must be one of {', '.join(models)}, the rule one of "
            f"{', '.join(RULES)}")
    mode = words[6] if len(words) > 6 else "window"
    if mode not in ("window", "online"):
        raise argparse.ArgumentTypeError(f"'{text}': the mode must be window or online")
    try:
        n, batch, steps, window, layers = map(int, [*words[2:6], *(words[7:] or ["1"])])
    except ValueError as e:
        raise argparse.ArgumentTypeError(f"'{text}': sizes are whole numbers") from e
    return Case(words[0], n, batch, words[1], steps, window, mode=mode, layers=layers)


CASES = [
    Case("gru", 128, 16, "d_rtrl", 100, 100),
    Case("gru", 256, 16, "d_rtrl", 100, 50),
    Case("gru", 256, 16, "d_rtrl", 100, 100),
    Case("gru", 128, 16, "d_rtrl", 100, 50, full=True),
    Case("gru", 256, 64, "d_rtrl", 100, 50, full=True),
    Case("gru", 256, 64, "d_rtrl", 100, 100, full=True),
    Case("gru", 512, 16, "d_rtrl", 100, 50, full=True),
    Case("gru", 512, 16, "d_rtrl", 100, 100, full=True),
    Case("gru", 512, 64, "d_rtrl", 20, 20, full=True),
    Case("gru", 32, 1, "d_rtrl", 100, 100),
    Case("gru", 128, 1, "d_rtrl", 100, 100),
    Case("gru", 256, 1, "d_rtrl", 100, 100),
    Case("gru", 512, 1, "d_rtrl", 100, 100, full=True),
    Case("gru", 512, 64, "d_rtrl", 100, 50, full=True),
    Case("gru", 32, 1, "d_rtrl", 100, 50, full=True),
    Case("gru", 128, 1, "d_rtrl", 100, 50, full=True),
    Case("gru", 256, 1, "d_rtrl", 100, 50, full=True),
    Case("gru", 512, 1, "d_rtrl", 100, 50, full=True),
    Case("gru", 256, 16, "d_rtrl", 100, 1, mode="online"),
    Case("lif", 100, 32, "pp_prop", 200, 50),
    Case("lif", 400, 32, "pp_prop", 200, 50),
    Case("lif", 400, 1, "pp_prop", 200, 50),
    Case("lif", 1000, 32, "pp_prop", 100, 50, full=True),
    Case("lif", 100, 1, "pp_prop", 200, 50, full=True),
    Case("lif", 1000, 1, "pp_prop", 100, 50, full=True),
    Case("lif", 400, 1, "d_rtrl", 100, 50, full=True),
    Case("lif", 1000, 32, "d_rtrl", 10, 10, full=True),
    Case("lif", 1000, 32, "d_rtrl", 100, 50, full=True),
    Case("lif", 400, 32, "d_rtrl", 20, 1, mode="online"),
    Case("lif", 400, 1, "d_rtrl", 100, 100),
    Case("lif", 400, 32, "d_rtrl", 20, 20),
    Case("lif", 400, 32, "d_rtrl", 100, 50, full=True),
]


def enter_environment(packages):
    """Runs this script again where the original is installed."""
    python = ENVIRONMENT / "bin" / "python"
    if Path(sys.prefix) == ENVIRONMENT:
        if packages:
            subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        return
    if not python.exists():
        print(f"installing braintrace==0.2.6 into {ENVIRONMENT.relative_to(ROOT)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "braintrace==0.2.6", "jax[cpu]"],
                       check=True)
    os.execv(python, [str(python), __file__, *sys.argv[1:]])


class Ours:
    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def run(self, case, repeat, *more):
        command = [self.program, "bench", "--model", case.model, "--n-in", case.n_in, "--n-rec",
                   case.n, "--n-out", 10, "--batch", case.batch, "--steps", case.steps,
                   "--algorithm", case.algorithm, "--mode", case.mode, "--window", case.window,
                   "--layers", case.layers, "--threads", self.threads, "--repeat", repeat, "--json", *more]
        out = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
        return json.loads(out.stdout.strip().splitlines()[-1])


def relative(a, b):
    import numpy as np
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


def check_gradients(original, package):
    """(worst difference in compat, worst difference of the default from BPTT at one step)."""
    sys.path.insert(0, str(package))
    import braintrace_cpp as bt
    import numpy as np

    class Net(bt.nn.Module):
        def __init__(self, case):
            super().__init__()
            self.rnn = bt.nn.GRUCell(case.n_in, case.n)
            self.out = bt.nn.Linear(case.n, 10)

        def update(self, x):
            return self.out(self.rnn(x))

    case = Case("gru", 24, 4, "d_rtrl", 12, 12)
    reference = original.model(case)
    learner = original.learner(reference, case)
    weights = {path: {k: np.asarray(v) for k, v in state.value.items()}
               for path, state in reference.states(original.bs.ParamState).items()}
    xs, ys = rivals.inputs(case)
    want = original.gradient(learner, original.jnp.asarray(xs), original.jnp.asarray(ys))

    def ours(algorithm, steps, **options):
        model = Net(case)
        mine = bt.compile(model, algorithm, bt.zeros((case.batch, case.n_in)),
                          batch_size=case.batch, **options)
        for path, value in weights.items():
            model.states()[path].value = value
        return mine.etrace_grad(xs[:steps], ys[:steps], reduction="sum",
                                step_fn=lambda x, y: bt.mse(mine(x), y))

    compat = ours(bt.D_RTRL, case.steps, compat=True)
    worst = max(relative(compat["/".join(path) + "/" + k], v)
                for path, leaves in want.items() for k, v in leaves.items()
                if np.linalg.norm(v) > 0)
    default, bptt = ours(bt.D_RTRL, 1), ours(bt.BPTT, 1)
    return worst, max(relative(default[k], bptt[k]) for k in bptt)


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.processor())
    return (f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
            f"load {os.getloadavg()[0]:.1f} at the start")


def several(once):
    """Runs of one side in one round: two at least, then as many as fit SECONDS_A_ROUND."""
    end = time.perf_counter() + SECONDS_A_ROUND
    runs = [once(), once()]
    while time.perf_counter() < end:
        runs.append(once())
    return runs


def runs_in_a_round(case, ours):
    """The same time for our side; --repeat wants a number."""
    sequence = ours.run(case, 3)["step_us_median"] * 1e-6 * case.steps
    return max(3, min(20000, int(SECONDS_A_ROUND / sequence)))


def compare(case, original, ours, sides, rounds):
    bptt = {side.name: side.timer(case) for side in sides if side.knows(case)}
    best_bptt = dict.fromkeys(bptt, float("inf"))
    theirs = original.timer(case)
    reference, cpu, mine = [], [], []
    repeat = runs_in_a_round(case, ours)
    for _ in range(rounds):
        runs = several(theirs)
        reference.append(min(wall for wall, _ in runs))
        cpu.append(min(used for _, used in runs))
        mine.append(ours.run(case, repeat))
        for name, once in bptt.items():
            best_bptt[name] = min(best_bptt[name], *(wall for wall, _ in several(once)))
    best = min(mine, key=lambda r: r["step_us_min"])
    reference.sort()
    medians = sorted(r["step_us_median"] for r in mine)
    return {"case": case.text, "original_us": reference[0] * 1e6,
            "original_median_us": reference[len(reference) // 2] * 1e6,
            "ours_us": best["step_us_min"], "ours_median_us": medians[len(medians) // 2],
            "original_cpu_us": min(cpu) * 1e6,
            "cpu_us": min(r["step_cpu_us"] for r in mine),
            "products_us": best["gemm_bound_us"], "rate": best["spike_rate"],
            "bptt_us": {name: seconds * 1e6 for name, seconds in best_bptt.items()}}


def bptt_text(row, side):
    return f"{row['bptt_us'][side.name]:.1f}" if side.name in row["bptt_us"] else "-"


def header(sides):
    names = ["workload (us per step; ours: default mode)", "original", "ours", "ratio", "medians",
             "CPU time of all threads", "ratio", "our products alone",
             *(side.name for side in sides)]
    return f"| {' | '.join(names)} |\n{'|---' * len(names)}|"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all rows, more rounds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--torch", action="store_true", help="install PyTorch to compare with")
    parser.add_argument("--only", default="", help="rows whose name contains this; calls: only those from outside")
    parser.add_argument("--program", default=ROOT / "build/release/bin/braintrace")
    parser.add_argument("--package", default=ROOT / "build/release/python")
    parser.add_argument("--case", type=case_of, action="append", metavar="MODEL:RULE:N:...",
                        help="only this row (repeatable): MODEL:RULE:N:BATCH:STEPS:WINDOW"
                        "[:MODE[:LAYERS]]")
    args = parser.parse_args()
    enter_environment(["torch"] if args.torch else [])
    print(f"{machine()}, {args.threads} threads of ours", flush=True)
    original = Original()
    compat, exact = check_gradients(original, args.package)
    print(f"gradients: compat against the original {compat:.1e}, default against "
          f"BPTT at one step {exact:.1e}", flush=True)
    if compat > 1e-4 or exact > 1e-4:
        sys.exit("gradients differ: nothing is timed")
    ours = Ours(args.program, args.threads)
    sides = rivals.installed()
    print(header(sides), flush=True)
    for case in args.case or CASES:
        if not args.case and ((case.full and not args.full) or args.only not in case.text):
            continue
        r = compare(case, original, ours, sides, args.rounds or (5 if args.full else 3))
        print(f"| {r['case']} | {r['original_us']:.1f} | {r['ours_us']:.1f} | "
              f"{r['original_us'] / r['ours_us']:.1f}x | {r['original_median_us']:.1f} / "
              f"{r['ours_median_us']:.1f} | {r['original_cpu_us']:.1f} / {r['cpu_us']:.1f} | "
              f"{r['original_cpu_us'] / r['cpu_us']:.1f}x | {r['products_us']:.1f} |"
              + "".join(f" {bptt_text(r, side)} |" for side in sides), flush=True)
    if args.case or args.only not in "calls":
        return
    print("\n| from outside | original | ours | ratio |\n|---|---|---|---|", flush=True)
    for text, original_time, our_time in calls.compare(args.program, args.rounds or 3):
        print(f"| {text} | {original_time:.1f} | {our_time:.1f} | "
              f"{original_time / our_time:.1f}x |", flush=True)


if __name__ == "__main__":
    main()
