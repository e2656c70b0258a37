# SPDX-License-Identifier: Apache-2.0
"""braintrace 0.2.6 (PyPI) on the models of `braintrace bench`: one side of compare.py."""
import time
import warnings

import rivals

# Rules by the names `bench` gives them, and what the original wants with them.
RULES = {
    "d_rtrl": ("D_RTRL", {}),
    "pp_prop": ("pp_prop", {"decay_or_rank": 0.9}),
    "eprop": ("EProp", {}),
    "ostl_recurrent": ("OSTLRecurrent", {}),
    "snap": ("SnAp", {"n": 2}),
    "uoro": ("UORO", {}),
}


class Original:
    """Models, weights, timed runs."""

    def __init__(self):
        warnings.filterwarnings("ignore")
        import brainstate
        import braintools
        import braintrace
        import brainunit as u
        import jax
        import jax.numpy as jnp
        self.bs, self.tools, self.bt, self.u = brainstate, braintools, braintrace, u
        self.jax, self.jnp = jax, jnp
        brainstate.environ.set(dt=1.0 * u.ms)

    def model(self, case):
        if case.spiking:
            return self.spiking(case)
        if case.model == "conv":
            return self.convolutional(case)
        bs, nn = self.bs, self.bt.nn
        cell = {"gru": nn.GRUCell, "lstm": nn.LSTMCell, "rnn": nn.ValinaRNNCell}[case.model]

        class Net(bs.nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = cell(case.n_in, case.n)
                self.more = [cell(case.n, case.n) for _ in range(case.layers - 1)]
                self.out = nn.Linear(case.n, 10)

            def update(self, x):
                for layer in (self.rnn, *self.more):
                    x = layer(x)
                return self.out(x)

        return Net()

    def spiking(self, case):
        bs, nn, u, init, jnp = self.bs, self.bt.nn, self.u, self.tools.init, self.jnp
        neuron = {"lif": nn.LIF, "alif": nn.ALIF}[case.model]

        class Layer(bs.nn.Module):
            def __init__(self, n_in):
                super().__init__()
                self.neu = neuron(case.n, tau=20 * u.ms, V_th=1 * u.mV)
                self.lin = nn.Linear(n_in + case.n, case.n,
                                     w_init=init.KaimingNormal(scale=2.0, unit=u.mA),
                                     b_init=init.ZeroInit(unit=u.mA))
                self.syn = nn.Expon(case.n, tau=10 * u.ms,
                                    g_initializer=init.ZeroInit(unit=u.mA))

            def update(self, x):
                z = jnp.concatenate([x, self.neu.get_spike()], -1)
                return self.neu(self.syn(self.lin(z)))

        class Net(bs.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [Layer(case.n_in if i == 0 else case.n)
                               for i in range(case.layers)]
                self.out = nn.LeakyRateReadout(case.n, 10, tau=10 * u.ms)

            def update(self, x):
                for layer in self.layers:
                    x = layer(x)
                return self.out(x)

        return Net()

    def convolutional(self, case):
        bs, nn = self.bs, self.bt.nn

        class Net(bs.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d((case.n_in, case.n_in, 1), 8, 3)
                self.rnn = nn.ValinaRNNCell(8 * case.n_in**2, case.n)
                self.out = nn.Linear(case.n, 10)

            def update(self, x):
                x = self.conv(x)
                return self.out(self.rnn(x.reshape(*x.shape[:-3], -1)))

        return Net()

    def learner(self, model, case):
        name, options = RULES[case.algorithm]
        xs, _ = rivals.inputs(case)
        return self.bt.compile(model, getattr(self.bt, name), self.jnp.asarray(xs[0]),
                               batch_size=case.batch, **options)

    def gradient(self, learner, xs, ys):
        return learner.etrace_grad(
            xs, ys, step_fn=lambda x, y: self.jnp.mean((learner(x) - y) ** 2), reduction="sum")

    def online(self, model, learner, xs, ys):
        """Every step with its gradient, and the weights moved by it."""
        params = model.states(self.bs.ParamState)

        def step(x, y):
            grads = self.gradient(learner, x[None], y[None])
            for path, g in grads.items():  # leaf by leaf: weights may carry units
                leaves, shape = self.jax.tree.flatten(params[path].value)
                moved = [w - 1e-4 * d for w, d in zip(leaves, self.jax.tree.leaves(g))]
                params[path].value = self.jax.tree.unflatten(shape, moved)

        self.bs.transform.for_loop(step, xs, ys)
        return [state.value for state in params.values()]

    def timer(self, case):
        """A function that runs the sequence once: seconds and CPU seconds per step."""
        model = self.model(case)
        learner = self.learner(model, case)
        xs, ys = map(self.jnp.asarray, rivals.inputs(case))
        whole = ((lambda a, b: self.online(model, learner, a, b)) if case.mode == "online"
                 else (lambda a, b: self.gradient(learner, a, b)))
        run = self.bs.transform.jit(whole)
        self.jax.block_until_ready(run(xs, ys))

        def once():
            start, cpu = time.perf_counter(), time.process_time()
            self.jax.block_until_ready(run(xs, ys))
            return ((time.perf_counter() - start) / case.steps,
                    (time.process_time() - cpu) / case.steps)

        return once
