# SPDX-License-Identifier: Apache-2.0
"""Optimisers, losses, schedules and tasks from Python."""
import braintrace_cpp as bt
import numpy as np
import pytest


@pytest.mark.parametrize("make", [bt.SGD, bt.Adam, bt.AdamW, bt.RMSprop, bt.Lion])
def test_optimisers_descend(make):
    opt, w = make(lr=0.1), {"w": bt.Value([3.0, -2.0])}
    for _ in range(20):
        w = {**w, **opt.update(w, {"w": 2 * w["w"]})}
    assert float(bt.sum(w["w"] ** 2)) < 10
    assert opt.num_updates == 20


def test_an_optimiser_updates_a_model_and_can_be_restored(net):
    opt = bt.Adam(1e-2, clip_norm=1.0, schedule=bt.schedule.cosine(1e-2, 10))
    grads = {k: bt.ones_like(v) for k, v in net.state_dict().items() if k != "rnn/h"}
    before = net.state_dict()["out/weight/bias"]
    opt.update(net, grads)
    moved = net.state_dict()["out/weight/bias"] - before
    np.testing.assert_allclose(moved, -1e-2, rtol=1e-3)
    other = bt.Adam(1e-2, schedule=bt.schedule.cosine(1e-2, 10))
    other.load_state_dict(opt.state_dict())
    assert other.learning_rate == opt.learning_rate < 1e-2


def test_a_schedule_may_be_a_python_function():
    assert bt.SGD(schedule=lambda n: 0.5 / (n + 1)).learning_rate == 0.5


def test_tasks_are_pure_functions_of_the_seed():
    task = bt.tasks.copying(symbols=4, length=3, delay=5, seed=7)
    a, b = task.batch(8), task.batch(4, first=4)
    np.testing.assert_array_equal(a.inputs[:, 4:], b.inputs)
    assert a.inputs.shape == (task.steps, 8, task.features)
    loss, accuracy = task.baseline(a)
    assert loss > 0 and 0 < accuracy < 1
    assert set(bt.tasks.names()) >= {"copying", "integrator", "evidence"}


def test_losses_refuse_other_shapes():
    with pytest.raises(ValueError):
        bt.mse(bt.ones(3), bt.ones(2))
    assert float(bt.accuracy([[0.1, 0.9], [0.9, 0.1]], [1, 1])) == 0.5
