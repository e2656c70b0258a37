# SPDX-License-Identifier: Apache-2.0
"""What stands in for brainstate and jax, and what notebooks show."""
import braintrace_cpp as bt
import numpy as np
import pytest
from braintrace_cpp import brainstate, jax


def test_states_of_one_kind(net):
    parameters = net.states(brainstate.ParamState)
    assert parameters and set(parameters) < set(net.states())
    assert ("rnn", "h") in net.states(brainstate.HiddenState)


def test_reset_all_states_keeps_the_parameters(net):
    before = net.state_dict()["out/weight/weight"]
    net(bt.ones(3))
    brainstate.nn.reset_all_states(net)
    assert not np.any(net.rnn.h.value)
    np.testing.assert_array_equal(net.state_dict()["out/weight/weight"], before)


def test_for_loop_runs_functions_and_learners(net_class):
    np.testing.assert_array_equal(
        brainstate.transform.for_loop(lambda x: 2 * x, bt.ones((4, 3))), 2 * np.ones((4, 3)))
    learner = bt.compile(net_class(), bt.D_RTRL, bt.zeros(3))
    assert brainstate.transform.for_loop(learner, bt.ones((4, 3))).shape == (4, 2)
    assert learner.running_index == 4


def test_for_loop_moves_the_states_of_models_and_learners(net_class):
    xs = bt.random_normal(bt.random_key(1), (4, 3))
    net, again = bt.nn.init_all_states(net_class(), seed=1), bt.nn.init_all_states(net_class(), seed=1)
    out = brainstate.transform.for_loop(lambda x: {"y": (net(x), x.sum())}, xs)
    want = [again(x) for x in xs]
    np.testing.assert_array_equal(out["y"][0], np.stack(want))
    assert out["y"][1].shape == (4,)
    np.testing.assert_array_equal(net.rnn.h.value, again.rnn.h.value)
    learner = bt.compile(net_class(), bt.D_RTRL, bt.zeros(3))
    assert brainstate.transform.for_loop(lambda x: learner(x), xs).shape == (4, 2)
    assert learner.running_index == 4
    assert brainstate.transform.for_loop(lambda x, y: None, xs, xs) is None
    with pytest.raises(bt.UserValueError, match=r"one length >= 1, got \[2, 4\]"):
        brainstate.transform.for_loop(lambda x, y: x, xs, xs[:2])


def test_for_loop_in_a_step_is_a_scan():
    class Model(bt.nn.Module):
        def update(self, x):
            return brainstate.transform.for_loop(lambda v: 2 * v, x)

    step = bt.trace_step(Model(), bt.ones((4, 3)))
    assert "scan" in str(step)


def test_trees_are_mapped():
    tree = {"a": 1, "b": [2, (3,)]}
    assert jax.tree.map(lambda x, y: x + y, tree, tree) == {"a": 2, "b": [4, (6,)]}


def test_notebooks_get_tables_and_learners_say_what_they_are():
    learner = bt.compile(bt.nn.MiniGRU(3, 4), bt.D_RTRL, bt.zeros(3))
    assert repr(learner) == "D_RTRL(MiniGRU(W_x=Linear, W_z=Linear, h=HiddenState), 0 calls)"
    xs, ys = bt.ones((5, 3)), bt.zeros((5, 4))
    c = learner.certificate(xs, ys, step_fn=lambda x, y: bt.mse(learner(x), y))
    assert "<td>W_x/weight/bias</td>" in c._repr_html_()
    assert f"{learner.memory_plan().total_bytes} bytes" in learner.memory_plan()._repr_html_()
    run = bt.TrainingRun(bt.tasks.integrator(), bt.nn.Sequential(
        bt.nn.GRUCell(1, 4), bt.nn.Linear(4, 1)), "d_rtrl", bt.Adam(), batch=2)
    run.train(updates=1, evaluate_every=1, samples=2)
    assert run.log._repr_html_().count("<tr>") == 3
