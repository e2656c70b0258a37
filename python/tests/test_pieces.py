# SPDX-License-Identifier: Apache-2.0
"""Pieces of rules: executors, traces in both spaces, predictors, sources, headers."""
import shutil
import subprocess

import braintrace_cpp as bt
import numpy as np
import pytest

RNG = np.random.default_rng(0)
XS = RNG.normal(size=(12, 3)).astype("float32")
YS = RNG.normal(size=(12, 2)).astype("float32")


def loss_of(learner):
    return lambda x, y: bt.mse(learner(x), y)


@pytest.fixture
def learner(net_class):
    return bt.compile(net_class(), "d_rtrl", bt.zeros(3), seed=1)


def fresh(learner):
    bt.nn.init_all_states(learner.model)
    learner.reset_state()


# ---- a source of steps ----

def test_a_source_gives_the_gradients_of_the_arrays(learner):
    whole, losses = learner.etrace_grad(XS, YS, step_fn=loss_of(learner), return_value=True)
    fresh(learner)
    asked, sunk = [], []

    def at(t):
        asked.append(t)
        return XS[t], YS[t]

    grads = learner.etrace_grad(at, steps=12, step_fn=loss_of(learner),
                                loss_sink=lambda t, loss: sunk.append((t, loss)))
    assert asked == list(range(12))
    assert [t for t, _ in sunk] == list(range(12))
    np.testing.assert_allclose([v for _, v in sunk], losses, rtol=1e-5)
    for path, g in whole.items():
        np.testing.assert_allclose(grads[path], g, rtol=1e-4, atol=1e-6)


def test_a_source_may_give_one_argument_or_trees(learner):
    def squares(x):
        return bt.sum(learner(x) ** 2)

    whole = learner.etrace_grad(XS, step_fn=squares)
    fresh(learner)
    grads = learner.etrace_grad(lambda t: XS[t], steps=12, step_fn=squares)
    fresh(learner)
    trees = learner.etrace_grad(lambda t: {"a": XS[t]}, steps=12, step_fn=lambda d: squares(d["a"]))
    for path, g in whole.items():
        np.testing.assert_allclose(grads[path], g, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(grads[path], trees[path])


def test_evolving_from_a_source(learner):
    learner.etrace_evolve(XS)
    state = learner.model.rnn.h.value.numpy().copy()
    fresh(learner)
    assert learner.etrace_evolve(lambda t: XS[t], steps=12) is None
    np.testing.assert_allclose(learner.model.rnn.h.value, state, rtol=1e-6)
    with pytest.raises(TypeError, match="grow with the length"):
        learner.etrace_evolve(lambda t: XS[t], steps=12, return_outputs=True)


def test_wrong_sources_are_refused(learner):
    with pytest.raises(TypeError, match="needs steps="):
        learner.etrace_grad(lambda t: XS[t], step_fn=loss_of(learner))
    with pytest.raises(TypeError, match="one function"):
        learner.etrace_grad(XS, YS, steps=3, step_fn=loss_of(learner))
    with pytest.raises(ValueError, match="length >= 1"):
        learner.etrace_grad(lambda t: (XS[t], YS[t]), steps=0, step_fn=loss_of(learner))
    with pytest.raises(bt.UserError, match="step 2 are not built"):
        learner.etrace_grad(lambda t: (XS[t], YS[t]) if t < 2 else XS[t], steps=4,
                            step_fn=loss_of(learner))

    def broken(t):
        raise LookupError("sensor")

    with pytest.raises(LookupError, match="sensor"):
        learner.etrace_grad(broken, steps=4, step_fn=loss_of(learner))


# ---- traces ----

def test_traces_in_the_space_of_parameters():
    mask = np.array([[1, 0, 1, 0]] * 3, "f4")
    model = bt.nn.Sequential(bt.nn.Linear(3, 4, w_mask=mask), bt.nn.LIF(4))
    learner = bt.compile(model, "d_rtrl", bt.zeros(3), seed=1)
    learner.etrace_evolve(XS)
    (stored,) = [t["value"].numpy() for t in learner.etraces() if t["key"] == "weight"]
    (seen,) = [t["value"].numpy() for t in learner.etraces(space="parameter")
               if t["value"].shape[:2] == (3, 4)]
    assert np.abs(stored[:, 1]).max() > 0
    np.testing.assert_allclose(seen, stored * mask[..., None])
    with pytest.raises(ValueError, match="effective or parameter"):
        learner.etraces(space="nothing")


# ---- executors ----

def test_an_executor_gives_the_pieces_of_the_trace_recursion():
    cell = bt.nn.init_all_states(bt.nn.ValinaRNNCell(3, 4), seed=1)
    executor = bt.ETraceVjpGraphExecutor(cell)
    assert not executor.is_compiled
    executor.compile_graph(bt.zeros(3))
    assert len(executor.graph.hidden_groups) == 1
    assert ("h",) in executor.path_to_states
    out, hidden, other, (xs, dfs), ds, final = executor.solve_h2w_h2h_jacobian(XS[0])
    y = out.numpy()
    np.testing.assert_allclose(hidden[("h",)], y)
    # relu: the tail passes where the unit is active; nothing of h stays outside the matrix.
    (df,) = dfs.values()
    np.testing.assert_allclose(df.numpy()[:, 0], (y > 0).astype("f4"))
    (x,) = {id(v): v for v in xs.values()}.values()
    np.testing.assert_allclose(x.numpy()[:3], XS[0])
    assert ds[0].shape == (4, 1, 1) and final == [] and other == {}


def test_an_executor_steps_traces_and_transposes(net_class):
    model = bt.nn.init_all_states(net_class(), seed=1)
    executor = bt.ETraceVjpGraphExecutor(model, "multi-step")
    executor.compile_graph(bt.zeros(3))

    def stepper(etrace, step):
        xs, dfs, ds = step
        return [etrace[0] * bt.squeeze(ds[0]) + 1.0]

    plain = executor.solve_h2w_h2h_jacobian(bt.MultiStepData(XS))
    ds = plain[4][0].numpy().reshape(12, 4)
    *_, final = executor.solve_h2w_h2h_jacobian(bt.MultiStepData(XS), stepper=stepper,
                                                init_etrace=[bt.zeros(4)])
    want = np.zeros(4, "f4")
    for d in ds:
        want = want * d + 1
    np.testing.assert_allclose(final[0], want, rtol=1e-5)
    out, *_, residual, _ = executor.solve_h2w_h2h_l2h_jacobian(bt.MultiStepData(XS))
    back = residual(out=bt.ones(out.shape))
    np.testing.assert_allclose(back["params"]["out/weight/bias"], [12, 12], rtol=1e-6)
    assert set(back["hidden"]) == {("rnn", "h")} and back["args"][0].shape == XS.shape


def test_wrong_executors_are_refused(net_class):
    model = bt.nn.init_all_states(net_class(), seed=1)
    with pytest.raises(bt.UserError):
        bt.ETraceVjpGraphExecutor(model, sparse_n=2)
    with pytest.raises(ValueError):
        bt.ETraceVjpGraphExecutor(model, "no-step")
    executor = bt.ETraceVjpGraphExecutor(model)
    with pytest.raises(bt.UserError, match="compile_graph"):
        executor.graph
    executor.compile_graph(bt.zeros(3))
    with pytest.raises(NotImplementedError):
        executor.solve_h2w_h2h_l2h_jacobian(bt.MultiStepData(XS))


# ---- DNI ----

def test_dni_learns_to_predict(net_class):
    learner = bt.compile(net_class(cell=bt.nn.MiniGRU(3, 4)), bt.DNI, bt.zeros(3), seed=1)
    with pytest.raises(RuntimeError, match="synthesizer"):
        learner.etrace_grad(XS, YS, step_fn=loss_of(learner))
    with pytest.raises(bt.UserError, match="shape"):
        learner.set_synthesizer(bt.SyntheticGradient({0: (3, 1)}))
    learner.set_synthesizer(bt.SyntheticGradient({0: (4, 1)}))
    before = learner.model.state_dict()
    shapes = []

    def loss(outputs):
        shapes.append(outputs.shape)
        return bt.sum(outputs ** 2)

    errors = bt.train_synthetic_gradient(learner, XS, chunk_size=3, loss_fn=loss, epochs=20,
                                         optimizer=bt.Adam(lr=2e-2))
    assert errors[-1] < 0.8 * errors[0] and len(errors) == 20 and (3, 2) in shapes
    w, b = learner.synthesizer.parameters(0)
    assert np.abs(w).max() > 0 and b.shape == (4,)
    for path, value in learner.model.state_dict().items():
        if "weight" in path:
            np.testing.assert_array_equal(before[path], value)
    with pytest.raises(ValueError, match="does not divide"):
        bt.train_synthetic_gradient(learner, XS, chunk_size=5)


def test_predictors_are_set_by_hand():
    s = bt.SyntheticGradient({0: (2, 1)}, scale=0.1, seed=3)
    assert s.group_shapes == {0: (2, 1)}
    s.set_parameters(0, np.eye(2), [1.0, 2.0])
    np.testing.assert_allclose(s.estimate(0, bt.ones((2, 1))), [[2], [3]])
    with pytest.raises(bt.UserError):
        s.set_parameters(0, np.eye(3), [1.0, 2.0])


# ---- headers ----

PROGRAM = '''#include "learner.hpp"
#include <cstdio>
int main() {
  static learner::Learner l;
  while (std::scanf("%f %f %f %f %f", l.x, l.x + 1, l.x + 2, l.target, l.target + 1) == 5) {
    l.step();
    std::printf("%.9g\\n", static_cast<double>(l.loss[0]));
  }
}
'''


def test_an_exported_learner_learns_as_the_library_does(learner, tmp_path):
    text = bt.export_learner(learner, loss_of(learner), XS[0], YS[0], learning_rate=0.1,
                             out=tmp_path / "learner.hpp")
    assert (tmp_path / "learner.hpp").read_text() == text
    assert "learner" in text
    handle, want = learner.trace_loss(loss_of(learner), XS[0], YS[0]), []
    sgd = bt.SGD(lr=0.1)
    for x, y in zip(XS, YS):
        loss, grads = learner.step_grad(x, y, loss=handle)
        sgd.update(learner.model, grads)
        want.append(loss)
    got = run_header(text, tmp_path)
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_an_exported_optimiser_has_its_moments(learner):
    text = bt.export_learner(learner, loss_of(learner), XS[0], YS[0], optimizer=bt.Adam(lr=0.01))
    assert "v_out_weight_bias" in text and "learning_rate = 0.01" in text
    with pytest.raises(NotImplementedError, match="clip_norm"):
        bt.export_learner(learner, loss_of(learner), XS[0], YS[0],
                          optimizer=bt.Adam(clip_norm=1.0))


def run_header(text, folder):
    compiler = shutil.which("c++")
    assert compiler, "a C++ compiler is needed"
    (folder / "main.cpp").write_text(PROGRAM)
    subprocess.run([compiler, "-std=c++17", "-Wall", "-Werror", "-O1", "main.cpp", "-o", "main"],
                   cwd=folder, check=True)
    rows = "\n".join(" ".join(map(repr, map(float, [*x, *y]))) for x, y in zip(XS, YS))
    done = subprocess.run([folder / "main"], input=rows, text=True, capture_output=True,
                          check=True)
    return [float(line) for line in done.stdout.split()]


def test_wrong_exports_are_refused(learner, net_class):
    with pytest.raises(ValueError, match="c\\+\\+17 or c99"):
        bt.export_learner(learner, loss_of(learner), XS[0], YS[0], language="rust")
    with pytest.raises(TypeError, match="takes a learner"):
        bt.export_learner(net_class(), loss_of(learner), XS[0], YS[0])
    bptt = bt.compile(net_class(), "bptt", bt.zeros(3))
    with pytest.raises(NotImplementedError, match="whole sequences"):
        bt.export_learner(bptt, loss_of(bptt), XS[0], YS[0])
