# SPDX-License-Identifier: Apache-2.0
"""What must not be possible: two threads in one learner, foreign handles, half-read files."""
import signal
import subprocess
import sys
import threading
import time

import braintrace_cpp as bt
import numpy as np
import pytest

XS, YS = np.ones((4000, 3), "float32"), np.zeros((4000, 4), "float32")

TWO_THREADS = '''
import threading
import braintrace_cpp as bt, numpy as np

learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
xs, ys = np.ones((3000, 3), "float32"), np.zeros((3000, 4), "float32")

def work():
    for _ in range(20):
        try:
            learner.etrace_grad(xs, ys, step_fn=lambda x, y: bt.mse(learner(x), y))
        except bt.UserRuntimeError:
            pass

threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
'''


@pytest.fixture
def learner():
    return bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3), seed=1)


def loss_of(learner):
    return lambda x, y: bt.mse(learner(x), y)


def test_threads_in_one_learner_do_not_end_the_interpreter():
    done = subprocess.run([sys.executable, "-c", TWO_THREADS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def call_from_another_thread(call):
    found = []

    def work():
        try:
            call()
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0] if found else None


@pytest.mark.parametrize("name, call", [
    ("etrace_grad", lambda l, h: l.etrace_grad(XS, YS, step_fn=loss_of(l))),
    ("etrace_evolve", lambda l, h: l.etrace_evolve(XS)),
    ("learner.step", lambda l, h: l.step(XS[0])),
    ("step_grad", lambda l, h: l.step_grad(XS[0], YS[0], loss=h)),
    ("reset_state", lambda l, h: l.reset_state()),
    ("etraces", lambda l, h: l.etraces())])
def test_a_learner_in_use_says_so_to_other_threads(learner, name, call):
    handle, errors = learner.trace_loss(loss_of(learner), XS[0], YS[0]), []

    def progress(done, total):
        errors.append(call_from_another_thread(lambda: call(learner, handle)))
        return False

    learner.etrace_grad(XS, YS, step_fn=loss_of(learner), progress=progress)
    assert isinstance(errors[0], bt.UserRuntimeError)
    assert str(errors[0]).startswith(f"{name}: the learner is in use by another thread")
    assert call_from_another_thread(lambda: call(learner, handle)) is None


def test_a_watcher_may_read_the_learner_it_watches(learner):
    seen = []
    learner.etrace_grad(XS[:6], YS[:6], step_fn=loss_of(learner), window=1,
                        progress=lambda done, total: seen.append(len(learner.etraces())))
    assert len(seen) == 6 and seen[0] > 0


def test_a_loss_of_another_learner_is_refused(learner):
    other = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
    handle = other.trace_loss(loss_of(other), XS[0], YS[0])
    del other
    with pytest.raises(bt.UserValueError, match="traced by another learner"):
        learner.step_grad(XS[0], YS[0], loss=handle)


def test_a_file_that_does_not_fit_changes_nothing(learner, tmp_path):
    file = tmp_path / "run.safetensors"
    learner.step(XS[0])
    learner.save(file)
    stored = bt.load_checkpoint(str(file))
    traces = {name: bt.zeros((1,)) for name in stored.traces}
    weights = {name: bt.zeros(w.shape) for name, w in stored.weights.items()}
    bt.Checkpoint(weights=weights, states=stored.states, traces=traces,
                  config=stored.config).save(str(file))
    before = learner.model.state_dict()
    with pytest.raises(bt.UserError, match="trace"):
        learner.load(file)
    for path, value in before.items():
        np.testing.assert_array_equal(learner.model.state_dict()[path], value)


def test_a_file_of_another_rule_is_refused(learner, tmp_path):
    other = bt.compile(bt.nn.GRUCell(3, 4), bt.UORO, bt.zeros(3))
    other.save(tmp_path / "run.safetensors")
    with pytest.raises(bt.UserValueError, match="written by \"UORO\", not by D_RTRL"):
        learner.load(tmp_path / "run.safetensors")


# ---- Ctrl-C ----


def seconds_to_ctrl_c(call):
    """How long a call of some seconds goes on after Ctrl-C."""
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        call()
    return time.monotonic() - start


def test_ctrl_c_stops_steps_without_a_gradient():
    learner = bt.compile(bt.nn.GRUCell(3, 100), bt.D_RTRL, bt.zeros(3))
    xs = np.ones((400_000, 3), "float32")
    assert seconds_to_ctrl_c(lambda: learner.etrace_evolve(xs)) < 2
    assert learner(xs[0]).shape == (100,)


def test_ctrl_c_stops_large_batches():
    task = bt.tasks.copying()
    assert seconds_to_ctrl_c(lambda: task.batch(500_000)) < 2


def test_ctrl_c_stops_an_evaluation():
    task = bt.tasks.copying()
    net = bt.nn.Sequential(bt.nn.GRUCell(10, 100), bt.nn.Linear(100, 10))
    bt.nn.init_all_states(net)
    before = net.state_dict()
    assert seconds_to_ctrl_c(lambda: bt.evaluate(task, net, samples=100_000)) < 2
    assert seconds_to_ctrl_c(
        lambda: bt.evaluate(task, net, samples=20_000, batch=20_000)) < 2
    for path, value in before.items():
        np.testing.assert_array_equal(net.state_dict()[path], value)


def test_steps_in_pieces_are_those_of_one_call(learner):
    xs = np.sin(np.arange(900, dtype="float32")).reshape(300, 3)
    got = learner.etrace_evolve(xs, return_outputs=True)
    one = bt.compile(learner.model, bt.D_RTRL, bt.zeros(3))
    want = np.stack([one(x) for x in xs])
    assert got.shape == (300, 4) and np.array_equal(got, want)


def test_batches_in_pieces_are_those_of_one_call():
    task = bt.tasks.copying(delay=2)
    large, small = task.batch(2050, first=5), task.batch(4, first=5 + 1022)
    assert large.inputs.shape[1] == 2050
    assert np.array_equal(np.asarray(large.inputs)[:, 1022:1026], small.inputs)
    assert np.array_equal(np.asarray(large.targets)[:, 1022:1026], small.targets)
