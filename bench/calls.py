# SPDX-License-Identifier: Apache-2.0
"""What a Python user waits for, beside the original: one call per step with its gradient, and
the first gradient of a new process. compare.py runs both sides in turn.

    python calls.py original|ours step     # us per call, smallest of several rounds
    python calls.py original|ours first    # prints when the first gradient is there
"""
import subprocess
import sys
import time
from pathlib import Path

N_IN, N, N_OUT, STEPS = 10, 128, 10, 300
ROOT = Path(__file__).resolve().parent.parent


def data(batch, steps):
    import numpy as np  # of the environment compare.py makes
    random = np.random.default_rng(0)
    return (random.standard_normal((steps, batch, N_IN), dtype="float32"),
            random.standard_normal((steps, batch, N_OUT), dtype="float32"))


def original_learner(batch):
    import warnings
    warnings.filterwarnings("ignore")
    import brainstate
    import braintrace
    import jax.numpy as jnp

    class Net(brainstate.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = braintrace.nn.GRUCell(N_IN, N)
            self.out = braintrace.nn.Linear(N, N_OUT)

        def update(self, x):
            return self.out(self.rnn(x))

    learner = braintrace.compile(Net(), braintrace.D_RTRL, jnp.zeros((batch, N_IN)),
                                 batch_size=batch)

    def gradient(xs, ys):
        return learner.etrace_grad(
            xs, ys, step_fn=lambda x, y: jnp.mean((learner(x) - y) ** 2), reduction="sum")

    return brainstate.transform.jit(gradient)


def our_learner(batch):
    sys.path.insert(0, str(ROOT / "build/release/python"))
    import braintrace_cpp as bt

    class Net(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = bt.nn.GRUCell(N_IN, N)
            self.out = bt.nn.Linear(N, N_OUT)

        def update(self, x):
            return self.out(self.rnn(x))

    return bt.compile(Net(), bt.D_RTRL, bt.zeros((batch, N_IN)), batch_size=batch), bt


def original_step():
    import jax
    run = original_learner(batch=1)
    xs, ys = (jax.numpy.asarray(a) for a in data(1, STEPS))
    steps = [(xs[t:t + 1], ys[t:t + 1]) for t in range(STEPS)]
    return lambda t: jax.block_until_ready(run(*steps[t]))


def our_step():
    learner, bt = our_learner(batch=1)
    xs, ys = data(1, STEPS)
    loss = learner.trace_loss(lambda x, y: bt.mse(learner(x), y), xs[0], ys[0])
    return lambda t: learner.step_grad(xs[t], ys[t], loss=loss)


def original_first():
    import jax
    jax.block_until_ready(original_learner(batch=16)(*data(16, 100)))


def our_first():
    learner, bt = our_learner(batch=16)
    learner.etrace_grad(*data(16, 100), step_fn=lambda x, y: bt.mse(learner(x), y),
                        reduction="sum")


def time_calls(call, rounds=5):
    for t in range(10):
        call(t)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for t in range(STEPS):
            call(t)
        best = min(best, (time.perf_counter() - start) / STEPS)
    return best * 1e6


def in_process(*words):
    """(seconds a new process takes, what it prints last)"""
    start = time.perf_counter()
    out = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True)
    return time.perf_counter() - start, out.stdout.strip().splitlines()[-1]


def compare(program, rounds):
    """Rows of a table: workload, original, ours, ratio."""
    script = [sys.executable, __file__]
    bench = [program, "bench", "--model", "gru", "--n-in", N_IN, "--n-rec", N, "--n-out", N_OUT,
             "--batch", 16, "--steps", 100, "--algorithm", "d_rtrl", "--mode", "window",
             "--repeat", 0]  # ends with the first gradient
    times = {name: [] for name in ("original step", "our step", "original first",
                                   "our first", "program first")}
    for _ in range(rounds):
        times["original step"].append(float(in_process(*script, "original", "step")[1]))
        times["our step"].append(float(in_process(*script, "ours", "step")[1]))
        times["original first"].append(in_process(*script, "original", "first")[0])
        times["our first"].append(in_process(*script, "ours", "first")[0])
        times["program first"].append(in_process(*bench)[0])
    best = {name: min(t) for name, t in times.items()}
    yield (f"one call per step from Python, gru d_rtrl N={N} B=1 (us)", best["original step"],
           best["our step"])
    first = f"first gradient of a new process, gru d_rtrl N={N} B=16 T=100 (ms)"
    for ours, where in (("our first", "from Python"), ("program first", "C++ program")):
        yield f"{first}, {where}", 1e3 * best["original first"], 1e3 * best[ours]


if __name__ == "__main__":
    side, what = sys.argv[1:]
    if what == "step":
        print(time_calls(original_step() if side == "original" else our_step()))
    else:
        (original_first if side == "original" else our_first)()
        print("done")
