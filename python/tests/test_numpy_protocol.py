# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy, and the stand-in for jax.numpy, on a Value: numbers of NumPy, also under tracing."""
import braintrace_cpp as bt
import braintrace_cpp.numpy as jnp
import numpy as np
import pytest

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7

FUNCTIONS = [
    lambda f, x: f.mean(x), lambda f, x: f.mean(x, axis=1), lambda f, x: f.sum(x, axis=(0, -1)),
    lambda f, x: f.sum(x, axis=0, keepdims=True), lambda f, x: f.max(x), lambda f, x: f.min(x, axis=2),
    lambda f, x: f.prod(x, axis=0), lambda f, x: f.var(x, axis=1), lambda f, x: f.std(x),
    lambda f, x: f.concatenate([x, x]), lambda f, x: f.concatenate([x, x], axis=-1),
    lambda f, x: f.stack([x, x], axis=1), lambda f, x: f.where(x > 2, x, 0.0), lambda f, x: f.clip(x, 0, 3),
    lambda f, x: f.reshape(x, (4, 6)), lambda f, x: f.transpose(x), lambda f, x: f.transpose(x, (1, 0, 2)),
    lambda f, x: f.squeeze(x[None]), lambda f, x: f.expand_dims(x, 1), lambda f, x: f.argmax(x),
    lambda f, x: f.argmax(x, axis=1), lambda f, x: f.cumsum(x), lambda f, x: f.cumsum(x, axis=1),
    lambda f, x: f.roll(x, 5), lambda f, x: f.roll(x, 1, axis=1), lambda f, x: f.flip(x),
    lambda f, x: f.flip(x, axis=1), lambda f, x: f.take(x, [3, 20]), lambda f, x: f.take(x, [1, 0], axis=1),
    lambda f, x: f.ravel(x), lambda f, x: f.swapaxes(x, 0, -1), lambda f, x: f.vstack([x[0], x[1]]),
    lambda f, x: f.hstack([x[0], x[1]]), lambda f, x: f.vstack([x[0, 0], x[1]]), lambda f, x: f.hstack([x[0, 0], x[1, 0]]),
    lambda f, x: f.split(x, 3, axis=1)[1], lambda f, x: f.split(x, [1, 3], axis=-1)[1],
    lambda f, x: f.zeros_like(x), lambda f, x: f.broadcast_to(x, (2, 2, 3, 4)), lambda f, x: f.tanh(x),
    lambda f, x: f.maximum(x, 2.0), lambda f, x: f.dot(x[0], x[1].T), lambda f, x: f.matmul(x[0], x[1, 0]),
    lambda f, x: f.matmul(x, x.reshape(2, 4, 3)), lambda f, x: x @ x.reshape(2, 4, 3),
    lambda f, x: x[0] @ x.reshape(2, 4, 3), lambda f, x: X @ x.reshape(2, 4, 3), lambda f, x: X[0] @ x[0, 0],
    lambda f, x: X % (x + 0.5), lambda f, x: X // (x + 0.5), lambda f, x: f.mean(x == 3),
]


@pytest.mark.parametrize("source", [np, jnp], ids=["numpy", "jax.numpy"])
@pytest.mark.parametrize("index", range(len(FUNCTIONS)))
def test_numbers_are_those_of_numpy_eager_and_traced(index, source):
    function, want = FUNCTIONS[index], FUNCTIONS[index](np, X)

    class Model(bt.nn.Module):
        def update(self, x):
            return function(source, x)

    eager = function(source, bt.Value(X))
    traced = bt.trace_step(Model(), X)
    assert isinstance(eager, bt.Value)
    for got in (eager, traced.program(X)[0]):
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_losses_may_be_written_with_numpy():
    learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, np.zeros(3))
    xs, ys = np.ones((5, 3)), np.zeros((5, 4))
    ours = learner.etrace_grad(xs, ys, step_fn=lambda x, y: bt.mse(learner(x), y))
    bt.nn.init_all_states(learner.model)
    learner.reset_state()
    theirs = learner.etrace_grad(xs, ys, step_fn=lambda x, y: np.mean((learner(x) - y) ** 2))
    for name, g in ours.items():
        np.testing.assert_allclose(theirs[name], g, rtol=1e-6)


def test_what_the_library_does_not_have_runs_on_the_numbers():
    v = bt.Value(X)
    assert np.median(v) == np.median(X)
    assert np.array_equal(np.sort([v[0, 0], v[0, 1]], axis=0), np.sort([X[0, 0], X[0, 1]], axis=0))
    assert np.sum(v, dtype=np.float64).dtype == np.float64
    assert [a.tolist() for a in np.where(v > 10)] == [a.tolist() for a in np.where(X > 10)]


def test_a_traced_step_names_the_function_it_does_not_have():
    class Model(bt.nn.Module):
        def update(self, x):
            return np.median(x)

    with pytest.raises(bt.UserTypeError, match="numpy.median: there is no such function"):
        bt.trace_step(Model(), X)


def test_products_of_numpy_are_not_trainable_ops():
    class Reservoir(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.h, self.w = bt.HiddenState((4, 4)), bt.nn.Linear(3, 4)

        def update(self, x):
            self.h.value = np.eye(4, dtype=np.float32) @ self.h.value + self.w(x)
            return self.h.value

    graph = bt.compile_etrace_graph(bt.nn.init_all_states(Reservoir()), np.zeros(3))
    assert [r.path for r in graph.hidden_param_op_relations] == [("w", "weight")]
