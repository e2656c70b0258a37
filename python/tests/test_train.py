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


def test_an_optimizer_attached_to_a_learner_moves_its_model():
    class Net(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = bt.nn.VanillaRNNCell(3, 200), bt.nn.Linear(200, 300)

        def update(self, x):
            return self.out(self.rnn(x))

    model, optimizer = Net(), bt.SGD(lr=0.5)
    optimizer.attach(bt.compile(model, bt.D_RTRL, bt.zeros(3), threads=2))
    before = np.array(model.out.weight.value["weight"])
    optimizer.update({"out/weight/weight": bt.ones((200, 300))})
    assert np.array_equal(model.out.weight.value["weight"], before - np.float32(0.5))
    with pytest.raises(bt.UserError):
        optimizer.attach(3)
    with pytest.raises(bt.UserError, match="not compiled yet"):
        optimizer.attach(bt.D_RTRL(Net()))


def test_an_attached_optimizer_moves_the_model_as_update_does():
    models = [bt.nn.init_all_states(bt.nn.Linear(2, 3), seed=1) for _ in range(2)]
    grads = {path: bt.ones(v.shape) for path, v in models[0].state_dict().items()}
    plain, attached = bt.Adam(lr=0.1), bt.Adam(lr=0.1)
    attached.attach(models[1])
    before = models[1].state_dict()
    kept = {path: v.numpy().copy() for path, v in before.items()}
    for _ in range(3):
        plain.update(models[0], grads)
        attached.update(grads)
    for path, value in models[0].state_dict().items():
        np.testing.assert_array_equal(models[1].state_dict()[path], value)
        np.testing.assert_array_equal(before[path], kept[path])
    with pytest.raises(bt.UserError, match="attach"):
        bt.SGD().update(grads)


def test_objects_say_what_they_are():
    class Net(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = bt.nn.GRUCell(3, 4), bt.nn.Linear(4, 1)

    assert repr(Net()) == "Net(out=Linear, rnn=GRUCell)"
    assert repr(bt.Adam(lr=0.5)) == "Adam(lr=0.5, 0 updates)"
    assert repr(bt.tasks.integrator(steps=7)) == "Task(integrator, steps=7, features=1, outputs=1)"


def test_auto_takes_the_best_rule_that_fits():
    rules = [bt.compile(bt.nn.MiniGRU(30, 40), "auto", bt.zeros(30), memory=memory).algorithm.name
             for memory in (10**6, "1MB", "4KB")]
    assert rules == ["D_RTRL", "D_RTRL", "Hybrid"]
    with pytest.raises(bt.UserError, match="no rule fits into 10 B"):
        bt.compile(bt.nn.MiniGRU(30, 40), "auto", bt.zeros(30), memory=10)
