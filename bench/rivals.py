# SPDX-License-Identifier: Apache-2.0
"""Back-propagation through time of compare.py's models in jitted JAX and in PyTorch, as a user
would write it: the whole sequence in one program, weights as in the other columns.

Each side offers `timer(case)`: a function that runs the sequence once and returns seconds and
CPU seconds per step. `installed()` gives the sides whose packages are there.
"""
import importlib.util
import math
import time

SCALE, WIDTH, THRESHOLD = 0.3, 1.0, 1.0  # ReLU surrogate, mV
DECAY_M, DECAY_S, DECAY_OUT = (math.exp(-1 / tau) for tau in (20, 10, 10))


def weights(case, seed=2):
    """Name -> array, both models: one matrix over [input, recurrent] per gate, and a readout."""
    import numpy as np
    rng = np.random.default_rng(seed)
    rows = case.n_in + case.n
    gates = ("w",) if case.model == "lif" else ("z", "r", "h")
    out = {g: rng.standard_normal((rows, case.n)) / math.sqrt(rows) for g in gates}
    out |= {f"b{g}": np.zeros(case.n) for g in gates}
    out["o"] = rng.standard_normal((case.n, 10)) / math.sqrt(case.n)
    return {k: v.astype("float32") for k, v in out.items()}


def inputs(case, seed=1):
    """xs and ys of every side: 10 % spikes where neurons spike."""
    import numpy as np
    rng = np.random.default_rng(seed)
    one = (case.n_in, case.n_in, 1) if case.model == "conv" else (case.n_in,)
    shape = (case.steps, case.batch, *one)
    xs = rng.random(shape) < 0.1 if case.spiking else rng.standard_normal(shape)
    ys = rng.standard_normal((case.steps, case.batch, 10))
    return xs.astype("float32"), ys.astype("float32")


def gru_step(lib, w, state, x):
    (h,) = state
    both = lib.join(x, h)
    z = lib.sigmoid(both @ w["z"] + w["bz"])
    r = lib.sigmoid(both @ w["r"] + w["br"])
    new = lib.tanh(lib.join(x, r * h) @ w["h"] + w["bh"])
    h = (1 - z) * h + z * new
    return (h,), h @ w["o"]


def lif_step(lib, w, state, x):
    v, g, s, o = state
    g = DECAY_S * g + lib.join(x, s) @ w["w"] + w["bw"]
    v = DECAY_M * (v - THRESHOLD * s) + (1 - DECAY_M) * g
    s = lib.spike(v - THRESHOLD)
    o = DECAY_OUT * o + s @ w["o"]
    return (v, g, s, o), o


def start(case, zeros):
    if case.model != "lif":
        return (zeros((case.batch, case.n)),)
    return (*(zeros((case.batch, case.n)) for _ in range(3)), zeros((case.batch, 10)))


def timed(run, steps):
    def once():
        began, cpu = time.perf_counter(), time.process_time()
        run()
        return (time.perf_counter() - began) / steps, (time.process_time() - cpu) / steps

    return once


class Rival:
    def knows(self, case):
        return case.model in ("gru", "lif") and case.layers == 1


class JaxBptt(Rival):
    name, package = "JAX BPTT", "jax"

    def timer(self, case):
        import jax
        import jax.numpy as jnp

        @jax.custom_jvp
        def spike(x):
            return (x >= 0).astype(x.dtype)

        @spike.defjvp
        def _(primals, tangents):
            (x,), (dx,) = primals, tangents
            return spike(x), jnp.maximum(0, SCALE * (1 - jnp.abs(x) / WIDTH)) * dx

        class Lib:
            sigmoid, tanh = staticmethod(jax.nn.sigmoid), staticmethod(jnp.tanh)

            @staticmethod
            def join(a, b):
                return jnp.concatenate([a, b], -1)

        Lib.spike = staticmethod(spike)
        step = lif_step if case.model == "lif" else gru_step

        def loss(w, xs, ys):
            def one(state, pair):
                state, out = step(Lib, w, state, pair[0])
                return state, jnp.mean((out - pair[1]) ** 2)

            return jnp.sum(jax.lax.scan(one, start(case, jnp.zeros), (xs, ys))[1])

        w, xs, ys = jax.tree.map(jnp.asarray, (weights(case), *inputs(case)))
        gradient = jax.jit(jax.grad(loss))
        jax.block_until_ready(gradient(w, xs, ys))
        return timed(lambda: jax.block_until_ready(gradient(w, xs, ys)), case.steps)


class TorchBptt(Rival):
    name, package = "PyTorch BPTT", "torch"

    def timer(self, case):
        import torch

        class Spike(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return (x >= 0).to(x.dtype)

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * torch.clamp(SCALE * (1 - x.abs() / WIDTH), min=0)

        class Lib:
            sigmoid, tanh = staticmethod(torch.sigmoid), staticmethod(torch.tanh)
            spike = staticmethod(Spike.apply)

            @staticmethod
            def join(a, b):
                return torch.cat([a, b], -1)

        w = {k: torch.tensor(v, requires_grad=True) for k, v in weights(case).items()}
        xs, ys = map(torch.tensor, inputs(case))
        step = lif_step if case.model == "lif" else gru_step

        def run():
            state, loss = start(case, torch.zeros), 0
            for x, y in zip(xs, ys):
                state, out = step(Lib, w, state, x)
                loss = loss + ((out - y) ** 2).mean()
            torch.autograd.grad(loss, list(w.values()))

        run()
        return timed(run, case.steps)


def installed():
    return [side for side in (JaxBptt(), TorchBptt())
            if importlib.util.find_spec(side.package)]
