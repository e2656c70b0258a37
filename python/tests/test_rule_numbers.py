# SPDX-License-Identifier: Apache-2.0
"""Every rule against its formula, written a second time in numpy, on a network of two groups."""
import braintrace_cpp as bt
import numpy as np
import pytest
from rule_reference import (A1, A2, Factored, Mixed, Model, PerParam, RankOne, add, single_steps,
                            windows)


def f64(values):
    return bt.Value(np.asarray(values), "f64")


class Net(bt.nn.Module):
    """The network of rule_reference."""

    def __init__(self, n_in, n1, n2):
        super().__init__()
        self.w1 = bt.nn.Linear(n_in, n1)
        self.u1 = bt.nn.Linear(n1, n1, b_init=None)
        self.w2 = bt.nn.Linear(n1, n2)
        self.v = bt.ParamState(np.ones(n1))
        self.wo = bt.ParamState(np.ones((n2, 2)))
        self.h1, self.h2 = bt.HiddenState(n1), bt.HiddenState(n2)

    def update(self, x):
        old = self.h1.value
        self.h1.value = A1 * old + bt.tanh(self.w1(x) + self.u1(old)) * self.v.value
        self.h2.value = A2 * self.h2.value + (1 - A2) * bt.tanh(self.w2(self.h1.value))
        return self.h2.value @ self.wo.value


class Case:
    """A learner and its reference with the same numbers."""

    def __init__(self, rule, batch, vmap=False, multi=False, n_in=3, seed=0, steps=7, **options):
        self.rng = np.random.default_rng(seed)
        self.batch, self.vmap, self.multi, self.steps = batch, vmap, multi, steps
        self.n_in, (n1, n2) = n_in, (4, 2)
        self.net = Net(n_in, n1, n2)
        self.feedback = [self.rng.normal(size=(n, n)) for n in (n1, n2)]
        self.nu = {g: self.rng.choice([-1.0, 1.0], size=(3 * steps, batch, n))
                   for g, n in ((1, n1), (2, n2))}
        if vmap:  # lanes share what is injected
            for table in self.nu.values():
                table[:] = table[:, :1]
        name, arguments, self.make = RULES[rule]
        method = "multi-step" if multi else "single-step"
        self.learner = bt.compile(self.net, name, f64(np.zeros((batch, n_in))), batch_size=batch,
                                  dtype="f64", vmap=vmap, vjp_method=method, **arguments, **options)
        self.p = {k: self.rng.normal(size=v.shape) * 0.6
                  for k, v in self.net.state_dict().items() if k not in ("h1", "h2")}
        self.set_weights()
        if rule == "random feedback":
            self.learner.set_feedback({i: f64(b) for i, b in enumerate(self.feedback)})
        self.model = Model(self.p, batch)
        self.rule = self.make(self)
        self.is_uoro, self.predict = rule == "uoro", None
        if rule == "dni":
            self.set_predictor((n1, n2))

    def set_weights(self):
        values = self.net.state_dict()
        self.net.load_state_dict({**values, **{k: f64(v) for k, v in self.p.items()}})

    def set_predictor(self, sizes):
        lead = () if self.vmap else (self.batch,)
        s = bt.SyntheticGradient({i: (*lead, n, 1) for i, n in enumerate(sizes)})
        drawn = [(np.float32(self.rng.normal(size=(n, n)) * 0.3),
                  np.float32(self.rng.normal(size=n))) for n in sizes]  # predictors are f32
        for i, (w, b) in enumerate(drawn):
            s.set_parameters(i, f64(w), f64(b))
        self.learner.synthesizer = s
        self.predict = lambda *hs: [h @ np.float64(w) + b for h, (w, b) in zip(hs, drawn)]

    def loss(self, chunk):
        if chunk:
            return lambda x, y: bt.sum((self.learner(bt.MultiStepData(x)) - y) ** 2, axis=(1, 2))
        return lambda x, y: bt.sum((self.learner(x) - y) ** 2)

    def online(self, xs, ys, mask, first, chunk, **options):
        if not self.is_uoro:
            return self.learner.etrace_grad(f64(xs), f64(ys), step_fn=self.loss(chunk),
                                            mask=f64(mask), chunk_size=chunk, **options)
        total = {}  # the signs are given step by step
        for t in range(self.steps):
            for g in (1, 2):
                nu = self.nu[g][first + t][..., None]
                self.learner.set_rule_input(f"nu/{g - 1}", f64(nu[0] if self.vmap else nu))
            part = slice(t, t + 1)
            grads = self.learner.etrace_grad(f64(xs[part]), f64(ys[part]), reduction="sum",
                                             step_fn=self.loss(None), mask=f64(mask[part]))
            add(total, {k: np.asarray(v) for k, v in grads.items()})
        return total

    def check(self, *, chunk=None, carry=True, reduction="sum", window=0, tol=1e-9):
        """Three sequences, the second one without a scored step; weights move in between."""
        for q in range(3):
            xs = self.rng.normal(size=(self.steps, self.batch, self.n_in))
            ys = self.rng.normal(size=(self.steps, self.batch, 2))
            mask = self.rng.normal(size=self.steps) * (self.rng.random(self.steps) < 0.6) * (q != 1)
            options = {} if self.is_uoro else {"carry_traces": carry, "window": window,
                                              "reduction": reduction}
            got = self.online(xs, ys, mask, q * self.steps, chunk, **options)
            if self.multi:
                size = chunk or max(window, 1)
                want = windows(self.model, self.rule, xs, ys, mask, size, self.predict)
            else:
                want = single_steps(self.model, self.rule, xs, ys, mask)
            scale = max(mask.sum(), 1) if reduction == "mean" else 1
            for key, value in want.items():
                np.testing.assert_allclose(got[key], value / scale, rtol=tol,
                                           atol=tol * (1e-9 + np.abs(value).max()), err_msg=key)
                self.p[key] -= 0.01 * np.asarray(got[key])
            self.set_weights()
            if not carry:
                steps = getattr(self.rule, "steps", 0)
                self.rule = self.make(self)
                self.rule.steps = steps  # the correction counts all steps since the reset

    def start_again(self):
        self.learner.reset_state()
        zeros = {k: f64(np.zeros(v.shape)) for k, v in self.net.state_dict().items()
                 if k in ("h1", "h2")}
        self.net.load_state_dict({**self.net.state_dict(), **zeros})
        self.model = Model(self.p, self.batch)
        self.rule = self.make(self)


def per_param(**options):
    return lambda c: PerParam(c.model, c.batch, **options)


LEAK = bt.ETraceConfig(temporal_recursion="scalar_leak", decay=0.3)
RULES = {
    "d_rtrl": (bt.D_RTRL, {}, per_param()),
    "coupled": (bt.OSTLRecurrent, {}, per_param(scope="coupled")),
    "snap 1": (bt.SnAp, {"n": 1}, per_param(scope="coupled")),
    "snap 2": (bt.SnAp, {"n": 2}, per_param(scope="full")),
    "leak": (LEAK, {}, per_param(leak=0.3)),
    "kappa": (bt.EProp, {"kappa_filter_decay": 0.6}, per_param(kappa=0.6)),
    "random feedback": (
        bt.EProp, {"kappa_filter_decay": 0.6, "feedback": "random", "random_feedback_key": 3},
        lambda c: PerParam(c.model, c.batch, kappa=0.6, feedback=c.feedback)),
    "pairs": (bt.pp_prop, {"decay_or_rank": (0.8, 0.3)},
              lambda c: Factored(c.model, c.batch, 0.8, 0.3)),
    "rank": (bt.pp_prop, {"decay_or_rank": 5}, lambda c: Factored(c.model, c.batch, 4 / 6, 4 / 6)),
    "ostl forward": (bt.OSTLFeedforward, {}, lambda c: Factored(c.model, c.batch, 1e-6, 1e-6)),
    "hybrid": (bt.Hybrid, {"decay_or_rank": 0.8}, lambda c: Mixed(c.model, c.batch, 0.8)),
    "uoro": (bt.UORO, {}, lambda c: RankOne(c.model, c.batch, c.nu)),
    "dni": (bt.DNI, {}, per_param()),
}
SINGLE = [r for r in RULES if r != "dni"]


@pytest.mark.parametrize("rule", SINGLE)
@pytest.mark.parametrize("batch, vmap", [(1, False), (3, False), (3, True)])
def test_single_steps(rule, batch, vmap):
    Case(rule, batch, vmap).check(window=1)


@pytest.mark.parametrize("rule", [r for r in SINGLE if r != "uoro"])
def test_several_steps_in_one_program(rule):
    # Chosen, not dividing the length, longer than it.
    Case(rule, 1, steps=5).check(window=0, carry=False)
    Case(rule, 3, steps=5).check(window=3, reduction="mean")
    Case(rule, 3, steps=5).check(window=20)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("batch, vmap", [(1, False), (3, True)])
def test_windows_of_multi_step_rules(rule, batch, vmap):
    Case(rule, batch, vmap, multi=True, steps=4).check(window=1)
    if not vmap and rule != "uoro":
        Case(rule, 3, multi=True, steps=6).check(chunk=3, reduction="mean")
        Case(rule, batch, multi=True, steps=4).check(window=2, carry=False)


@pytest.mark.parametrize("rule", [r for r in SINGLE if r != "uoro"])
def test_a_reset_forgets(rule):
    case = Case(rule, 2)
    case.check()
    case.start_again()
    case.check()


@pytest.mark.parametrize("rule", ["d_rtrl", "snap 2", "kappa", "random feedback", "pairs", "hybrid"])
def test_steps_without_a_gradient_move_the_traces(rule):
    case = Case(rule, 2)
    xs = case.rng.normal(size=(4, 2, 3))
    case.learner.etrace_evolve(f64(xs[:2]))
    case.learner(bt.MultiStepData(f64(xs[2:])))
    for x in xs:
        case.rule.roll(case.model.step(x))
    case.check(window=3)
    case.learner.reset_state(5)  # samples
    case.batch, case.model = 5, Model(case.p, 5)
    case.rule = case.make(case)
    case.check()


@pytest.mark.parametrize("rule", ["coupled", "kappa", "random feedback", "pairs"])
def test_streaming_with_weights_that_move_at_every_step(rule):
    case = Case(rule, 2)
    handle = case.learner.trace_loss(case.loss(None), f64(np.zeros((2, 3))), f64(np.zeros((2, 2))))
    for _ in range(5):
        x, y = case.rng.normal(size=(2, 3)), case.rng.normal(size=(2, 2))
        _, grads = case.learner.step_grad(f64(x), f64(y), loss=handle, weight=0.7)
        for key, value in single_steps(case.model, case.rule, [x], [y], [0.7]).items():
            np.testing.assert_allclose(grads[key], value, rtol=1e-9, atol=1e-12, err_msg=key)
            case.p[key] -= 0.1 * np.asarray(grads[key])
        case.set_weights()


def test_hybrid_mixes_both_ways_of_storing():
    case = Case("hybrid", 2, n_in=1)
    case.check(window=1)
    case.check(window=3)


@pytest.mark.parametrize("rule", ["d_rtrl", "coupled", "snap 2", "kappa", "random feedback"])
def test_traces_in_bf16_are_close(rule):
    for window in (1, 0):
        Case(rule, 2, trace_dtype="bf16").check(window=window, tol=5e-2)


def test_rules_differ():
    grads = {}
    for rule in ("d_rtrl", "coupled", "snap 2", "leak", "kappa", "pairs"):
        case = Case(rule, 2)
        xs, ys = np.ones((7, 2, 3)), np.ones((7, 2, 2))
        grads[rule] = np.asarray(case.online(xs, ys, np.ones(7), 0, None)["w1/weight/weight"])
    for one in grads:
        for other in grads:
            assert one == other or np.abs(grads[one] - grads[other]).max() > 1e-6
