# SPDX-License-Identifier: Apache-2.0
"""What f64 models are given in double precision keeps its digits."""
import braintrace_cpp as bt
import numpy as np


def test_what_an_f64_learner_is_given_keeps_its_digits():
    def f64(a):
        return bt.Value(a, "f64")

    rng = np.random.default_rng(0)
    xs, ys, mask = rng.normal(size=(5, 3)), rng.normal(size=(5, 4)), rng.random(5)
    h = rng.normal(size=4)

    def run(read, way, rule="d_rtrl"):
        learner = bt.compile(bt.nn.GRUCell(3, 4), rule, bt.zeros(3), dtype="f64", seed=1)

        def loss(x, y):
            return bt.mse(learner(x), y)

        learner.model.h.value = read(h)
        if way == "state dict":
            learner.model.load_state_dict({**learner.model.state_dict(), "h": read(ys[0])})
        if way == "steps":
            handle = learner.trace_loss(loss, read(xs[0]), read(ys[0]))
            grads = [learner.step_grad(read(x), read(y), loss=handle)[1]
                     for x, y in zip(xs, ys)][-1]
        elif way == "prepared":
            prepared = learner.prepare(read(xs), read(ys), step_fn=loss)
            grads = prepared.grad(read(xs), read(ys), mask=read(mask))
        elif way == "modulator":
            learner.modulator = read(mask[0])
            grads = learner.etrace_grad(read(xs), read(ys), step_fn=loss)
        else:
            grads = learner.etrace_grad(read(xs), read(ys), step_fn=loss, mask=read(mask))
        return {k: v.tolist() for k, v in grads.items()}

    for way in ("whole", "state dict", "steps", "prepared"):
        assert run(f64, way) == run(lambda a: a, way), way
    assert run(f64, "modulator", "three_factor") == run(float_or_array, "modulator",
                                                        "three_factor")


def test_constants_of_an_f64_step_and_loss_keep_their_digits():
    scale, target = np.random.default_rng(0).normal(size=(2, 4))
    xs = np.random.default_rng(1).normal(size=(5, 3))

    class Scaled(bt.nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.rnn = bt.nn.GRUCell(3, 4)
            self.scale = (scale,)  # data, not a part

        def update(self, x):
            return self.rnn(x) * self.scale[0]

    def run(read):
        learner = bt.compile(Scaled(read(scale)), "d_rtrl", bt.zeros(3), dtype="f64", seed=1)

        def loss(x):
            return bt.mse(learner(x), read(target))

        handle = learner.trace_loss(loss, xs[0])
        grads = [learner.etrace_grad(xs, step_fn=loss), learner.step_grad(xs[0], loss=handle)[1],
                 learner.prepare(xs, step_fn=loss).grad(xs)]
        return [{k: v.tolist() for k, v in g.items()} for g in grads]

    assert run(lambda a: a) == run(lambda a: bt.Value(a, "f64"))


def test_gradients_and_moments_of_f64_parameters_keep_their_digits():
    g = np.random.default_rng(0).normal(size=(1, 1))

    def run(read, way):
        net = bt.nn.init_all_states(bt.nn.Linear(1, 1, b_init=None), seed=1, dtype="f64")
        start = net.state_dict()
        opt = bt.Adam(lr=0.1)
        if way == "attached":
            opt.attach(net)
            for _ in range(3):
                opt.update({"weight/weight": read(g)})
        elif way == "model":
            opt.update(net, {"weight/weight": read(g)})
        else:
            return opt.update(start, {"weight/weight": read(g)})["weight/weight"].tolist()
        other = bt.Adam(lr=0.1)
        other.load_state_dict({k: read(np.asarray(v)) for k, v in opt.state_dict().items()})
        other.update(net, {"weight/weight": read(2 * g)})
        return net.state_dict()["weight/weight"].tolist()

    for way in ("attached", "model", "values"):
        assert run(lambda a: a, way) == run(lambda a: bt.Value(a, "f64"), way), way


def float_or_array(a):
    return a if np.ndim(a) else float(a)
