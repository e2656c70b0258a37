# SPDX-License-Identifier: Apache-2.0
"""Learning rules in numpy, for a network of two groups:

h1' = A1 h1 + v tanh(x w1 + h1 u1), h2' = A2 h2 + (1 - A2) tanh(h1' w2), out = h2' wo, and the sum
of squares as the loss of a step.
"""
import numpy as np

A1, A2 = 0.7, 0.6  # what the groups keep of themselves
# Traced ops: parameter, what it reads, group, bias.
RELATIONS = [("w1", "x", 1, True), ("u1", "h1", 1, False), ("w2", "new1", 2, True)]
PLAIN = ("v", "wo")


class Model:
    """One step forward and backward by hand; `p`: parameters by path."""

    def __init__(self, p, batch):
        self.p = p
        self.h1, self.h2 = np.zeros((batch, p["v"].size)), np.zeros((batch, len(p["wo"])))

    def step(self, x):
        p, h1 = self.p, self.h1
        t1 = np.tanh(x @ p["w1/weight/weight"] + p["w1/weight/bias"] + h1 @ p["u1/weight/weight"])
        new1 = A1 * h1 + t1 * p["v"]
        t2 = np.tanh(new1 @ p["w2/weight/weight"] + p["w2/weight/bias"])
        new2 = A2 * self.h2 + (1 - A2) * t2
        self.h1, self.h2 = new1, new2
        return {"x": x, "h1": h1, "t1": t1, "new1": new1, "new2": new2, "out": new2 @ p["wo"],
                1: (1 - t1**2) * p["v"], 2: (1 - A2) * (1 - t2**2)}  # df of both groups

    def back(self, c, g_out, late1=0.0, late2=0.0):
        """Signals of the groups, adjoints at entry, gradients of this step alone."""
        p = self.p
        s2 = g_out @ p["wo"].T + late2
        g2 = s2 * c[2]
        s1 = g2 @ p["w2/weight/weight"].T + late1
        g1 = s1 * c[1]
        grads = {"wo": c["new2"].T @ g_out, "v": (s1 * c["t1"]).sum(0)}
        for name, read, group, bias in RELATIONS:
            g = g1 if group == 1 else g2
            grads[f"{name}/weight/weight"] = c[read].T @ g
            if bias:
                grads[f"{name}/weight/bias"] = g.sum(0)
        return (s1, s2), (s1 * A1 + g1 @ p["u1/weight/weight"].T, s2 * A2), grads

    def jacobian(self, c):
        """d h1'[p] / d h1[q] per sample."""
        n = c["h1"].shape[1]
        return A1 * np.eye(n) + np.einsum("bp,qp->bpq", c[1], self.p["u1/weight/weight"])


def add(total, more):
    for k, v in more.items():
        total[k] = total.get(k, 0) + v


class PerParam:
    """One trace per weight entry, (batch, in, out, K); K > 1: over all positions of group 1."""

    def __init__(self, model, batch, *, scope="diagonal", kappa=0.0, feedback=None, leak=None):
        self.model, self.scope, self.kappa = model, scope, kappa
        self.feedback, self.leak = feedback, leak
        self.eps = {}
        for name, _, group, bias in RELATIONS:
            rows, width = model.p[f"{name}/weight/weight"].shape
            k = width if scope == "full" and group == 1 else 1
            self.eps[f"{name}/weight/weight"] = np.zeros((batch, rows, width, k))
            if bias:
                self.eps[f"{name}/weight/bias"] = np.zeros((batch, 1, width, k))
        self.filtered = {k: np.zeros_like(v) for k, v in self.eps.items()}

    def times_d(self, c, group, e):
        if e.shape[-1] > 1:
            return np.einsum("bpq,bioq->biop", self.model.jacobian(c), e)
        d = np.full_like(c[group], A1 if group == 1 else A2)
        if self.scope == "coupled" and group == 1:
            d = d + c[1] * np.diag(self.model.p["u1/weight/weight"])
        if self.leak is not None:
            d = np.full_like(d, self.leak)
        return e * d[:, None, :, None]

    def sent(self, s, group):
        if self.feedback is None:
            return s
        return s / (np.sqrt((s**2).sum(-1, keepdims=True)) + 1e-8) @ self.feedback[group - 1]

    def meet(self, s, group, e):
        s = self.sent(s, group)
        return ((s[:, None, None, :] if e.shape[-1] > 1 else s[:, None, :, None]) * e).sum((0, -1))

    def each(self):
        for name, read, group, bias in RELATIONS:
            yield f"{name}/weight/weight", read, group
            if bias:
                yield f"{name}/weight/bias", None, group

    def step(self, c, s):
        """Traces move; the past's share of the gradient, or all of it under random feedback."""
        out = {}
        for key, read, group in self.each():
            old = self.times_d(c, group, self.eps[key])
            x = c[read] if read else np.ones((len(c["x"]), 1))
            inst = np.einsum("bi,bo->bio", x, c[group])[..., None]
            if old.shape[-1] > 1:
                inst = inst * np.eye(old.shape[-1])
            now = old + inst
            past = old + self.kappa * self.filtered[key]
            whole = now + self.kappa * self.filtered[key]
            met = past if self.feedback is None else whole
            out[key] = self.meet(s[group - 1], group, met).reshape(self.model.p[key].shape)
            self.eps[key], self.filtered[key] = now, whole
        return out

    def entry(self, s):
        stored = self.filtered if self.kappa else self.eps
        return {key: self.meet(s[group - 1], group, stored[key]).reshape(self.model.p[key].shape)
                for key, _, group in self.each()}

    def roll(self, c):
        self.step(c, (np.zeros_like(c["new1"]), np.zeros_like(c["new2"])))


class Factored:
    """X <- ax X + x, f <- af D f + (1 - af) df."""

    def __init__(self, model, batch, ax, af, relations=RELATIONS):
        self.model, self.ax, self.af, self.relations, self.steps = model, ax, af, relations, 0
        shapes = {n: model.p[f"{n}/weight/weight"].shape for n, *_ in relations}
        self.x = {n: np.zeros((batch, s[0])) for n, s in shapes.items()}
        self.f = {n: np.zeros((batch, s[1])) for n, s in shapes.items()}

    def roll(self, c):
        self.steps += 1
        for name, read, group, _ in self.relations:
            d = A1 if group == 1 else A2
            self.x[name] = self.ax * self.x[name] + c[read]
            self.f[name] = self.af * d * self.f[name] + (1 - self.af) * c[group]

    def products(self, s, newest=None):
        correction, out = max(1 - self.af**self.steps, 1e-8), {}
        for name, read, group, bias in self.relations:
            q = s[group - 1] * self.f[name] / correction
            own = 0 * q if newest is None else \
                (1 - self.af) / correction * s[group - 1] * newest[group]
            out[f"{name}/weight/weight"] = self.x[name].T @ q
            if newest is not None:
                out[f"{name}/weight/weight"] -= newest[read].T @ own
            if bias:
                out[f"{name}/weight/bias"] = (q - own).sum(0)
        return out

    def step(self, c, s):
        self.roll(c)
        return self.products(s, c)

    def entry(self, s):
        return self.products(s)


class Mixed:
    """Hybrid: factored where in + out <= entries of the weights, per sample."""

    def __init__(self, model, batch, a):
        def small(relation):
            rows, width = model.p[f"{relation[0]}/weight/weight"].shape
            return rows + width <= rows * width + width * relation[3]
        self.each = PerParam(model, batch)
        self.pairs = Factored(model, batch, a, a, [r for r in RELATIONS if small(r)])

    @property
    def steps(self):
        return self.pairs.steps

    @steps.setter
    def steps(self, steps):
        self.pairs.steps = steps

    def step(self, c, s):
        return {**self.each.step(c, s), **self.pairs.step(c, s)}

    def entry(self, s):
        return {**self.each.entry(s), **self.pairs.entry(s)}

    def roll(self, c):
        self.each.roll(c)
        self.pairs.roll(c)


class RankOne:
    """UORO with a theta per sample and tabulated signs nu[group][step]."""

    def __init__(self, model, batch, nu):
        self.model, self.nu, self.t = model, nu, 0
        self.sig = {1: np.zeros_like(model.h1), 2: np.zeros_like(model.h2)}
        self.theta = {1: {}, 2: {}}
        for name, _, group, bias in RELATIONS:
            for leaf in ("weight", "bias")[:1 + bias]:
                key = f"{name}/weight/{leaf}"
                self.theta[group][key] = np.zeros((batch,) + model.p[key].shape)

    def moved(self, c, group):
        if group == 2:
            return A2 * self.sig[2]
        return np.einsum("bpq,bq->bp", self.model.jacobian(c), self.sig[1])

    def roll(self, c):
        def norm(*parts):
            return np.sqrt(sum((v**2).reshape(len(v), -1).sum(1) for v in parts)) + 1e-12

        def scaled(v, r):
            return v * r.reshape((-1,) + (1,) * (v.ndim - 1))

        for group in (1, 2):
            nu, ds, old = self.nu[group][self.t], self.moved(c, group), self.theta[group]
            ct, new = nu * c[group], {}
            for name, read, g, bias in RELATIONS:
                if g == group:
                    new[f"{name}/weight/weight"] = np.einsum("bi,bo->bio", c[read], ct)
                    if bias:
                        new[f"{name}/weight/bias"] = ct
            r0 = np.sqrt(norm(*old.values()) / norm(ds))
            r1 = np.sqrt(norm(*new.values()) / norm(nu))
            self.sig[group] = scaled(ds, r0) + scaled(nu, r1)
            self.theta[group] = {k: scaled(v, 1 / r0) + scaled(new[k], 1 / r1)
                                 for k, v in old.items()}
        self.t += 1

    def met(self, s, sig):
        return {k: np.einsum("b,b...->...", (s[group - 1] * sig[group]).sum(1), theta)
                for group in (1, 2) for k, theta in self.theta[group].items()}

    def step(self, c, s):
        out = self.met(s, {g: self.moved(c, g) for g in (1, 2)})
        self.roll(c)
        return out

    def entry(self, s):
        return self.met(s, self.sig)


def single_steps(model, rule, xs, ys, mask):
    total = {}
    for x, y, weight in zip(xs, ys, mask):
        c = model.step(x)
        signals, _, newest = model.back(c, 2 * weight * (c["out"] - y))
        published = getattr(rule, "feedback", None) is not None
        add(total, {k: v for k, v in newest.items() if not published or k in PLAIN})
        add(total, rule.step(c, signals))
    return total


def windows(model, rule, xs, ys, mask, size, predict=None):
    total = {}
    for t in range(0, len(xs), size):
        steps = [model.step(x) for x in xs[t:t + size]]
        late = (0.0, 0.0)
        for i in reversed(range(size)):
            g_out = 2 * mask[t + i] * (steps[i]["out"] - ys[t + i])
            _, late, grads = model.back(steps[i], g_out, *late)
            add(total, grads)
        add(total, rule.entry(late))
        if predict:
            late = predict(steps[-1]["new1"], steps[-1]["new2"])
            for c in reversed(steps):
                _, late, grads = model.back(c, np.zeros_like(c["out"]), *late)
                add(total, {k: grads[k] for k in PLAIN})
        for c in steps:
            rule.roll(c)
    return total
