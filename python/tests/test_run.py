# SPDX-License-Identifier: Apache-2.0
"""Training runs: callbacks, progress, stopping, going on, and their page."""
import signal
import threading

import braintrace_cpp as bt
import numpy as np
import pytest


def make_run(net_class, algorithm="d_rtrl", **options):
    task = bt.tasks.integrator(steps=10)
    return bt.TrainingRun(task, net_class(task.features, 6, task.outputs), algorithm,
                          bt.Adam(lr=1e-2, clip_norm=1.0), batch=4, seed=3, **options)


def weights(run):
    return {k: v.numpy() for k, v in run.model.state_dict().items() if "weight" in k}


def test_a_run_learns_and_tells(net_class):
    run = make_run(net_class)
    assert run.train(60, evaluate_every=30, samples=32)
    log = run.log
    assert [p.update for p in log.evaluations] == [0, 30, 60]
    assert log.evaluations[-1].loss < 0.7 * log.evaluations[0].loss
    assert len(log.training) == run.updates == 60
    assert log.constant_loss > 0 and log.time_steps == 60 * 4 * 10
    same = bt.evaluate(run.task, run.model, samples=32)
    assert same.loss == pytest.approx(log.evaluations[-1].loss, rel=1e-6)


def test_callbacks_see_the_log_and_stop(net_class):
    run, seen, tests = make_run(net_class), [], []

    def after(done, log):
        seen.append((done, log.training[-1].loss))
        return done < 3

    assert not run.train(10, evaluate_every=2, samples=4, on_update=after,
                         on_evaluation=lambda log: tests.append(len(log.evaluations)))
    assert [d for d, _ in seen] == [1, 2, 3] and run.updates == 3
    assert seen[-1][1] == list(run.log.training)[-1].loss
    assert tests == [1, 2]


def test_a_bar_counts_batches_also_after_a_restore(net_class):
    class Bar:  # what we use of tqdm
        n = 2

        def update(self, n):
            self.n += n

    run, bar = make_run(net_class), Bar()
    run.train(2)
    run.train(5, progress=bar)
    assert bar.n == 5


def test_two_halves_are_one_whole_bit_for_bit(net_class, tmp_path):
    whole = make_run(net_class)
    whole.train(8, evaluate_every=4, samples=4)
    first = make_run(net_class)
    first.train(4, evaluate_every=4, samples=4)
    first.save(tmp_path / "run.safetensors")
    second = make_run(net_class)
    assert second.load(tmp_path / "run.safetensors") == 4
    second.train(8, evaluate_every=4, samples=4)
    for path, value in weights(whole).items():
        assert np.array_equal(weights(second)[path], value), path
    assert [p.loss for p in second.log.training] == [p.loss for p in whole.log.training]
    assert [p.update for p in second.log.evaluations] == [0, 4, 8]


def test_errors_of_callbacks_arrive_and_ctrl_c_stops(net_class):
    run = make_run(net_class)

    def broken(done, log):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run.train(5, on_update=broken)
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        run.train(10**9)
    done = run.updates
    run.train(done + 1)
    assert run.updates == done + 1


def test_other_threads_run_meanwhile(net_class):
    run, ticks, stop = make_run(net_class), [0], threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    run.train(300)
    stop.set()
    thread.join()
    assert ticks[0] > 5


def test_the_learner_of_a_run_can_be_asked(net_class):
    run = make_run(net_class, bt.pp_prop, decay_or_rank=0.9)
    assert run.learner.algorithm.name == "pp_prop"
    assert run.learner.graph.hidden_groups[0].hidden_paths == [("rnn", "h")]
    grads, loss = run.gradient(run.task.batch(4))
    assert loss > 0 and all(np.isfinite(g.numpy()).all() for g in grads.values())
    assert run.learner.memory_plan().total_bytes > 0
    assert run.optimizer.learning_rate == pytest.approx(1e-2)


def test_only_scored_steps_count_in_a_certificate(net_class):
    task = bt.tasks.copying(symbols=3, length=2, delay=3)
    run = bt.TrainingRun(task, net_class(task.features, 6, task.outputs), "bptt", bt.Adam(),
                         batch=4, seed=3, dtype="f64")
    assert 0 < sum(task.mask) < task.steps
    c = run.certificate()
    _, loss = run.gradient(task.batch(4, test=True))
    assert c.loss == pytest.approx(loss, rel=1e-5)
    assert c.cosine > 0.9999


def test_the_page_tells_the_run(net_class, tmp_path):
    run = make_run(net_class)
    run.train(2, evaluate_every=1, samples=4)
    text = run.report(tmp_path / "run.html", title="my run")
    assert (tmp_path / "run.html").read_text() == text
    assert "my run" in text and "rnn/Wz" in text and "http://" not in text.replace(
        "http://www.w3.org", "")
    assert "ertificate" in text


def test_spiking_runs_have_rasters():
    task = bt.tasks.delayed_match(steps=20)
    model = bt.nn.Sequential(bt.nn.Linear(task.features, 8), bt.nn.LIF(8, tau=5.0, V_th=0.3),
                             bt.nn.Linear(8, task.outputs))
    run = bt.TrainingRun(task, model, "pp_prop", bt.Adam(), batch=4, decay_or_rank=0.9)
    run.train(1, evaluate_every=1, samples=4, raster_units=8)
    assert run.log.rasters[0].units == 8 and run.log.evaluations[-1].firing_rate is not None
    assert bt.evaluate(task, model, samples=4, raster_units=8).rasters[0].steps == task.steps


def test_wrong_runs_are_refused(net_class):
    task = bt.tasks.integrator()
    used = bt.SGD()
    used.update({"w": bt.ones(1)}, {"w": bt.ones(1)})
    with pytest.raises(bt.UserError, match="must be new"):
        bt.TrainingRun(task, net_class(1, 4, 1), "d_rtrl", used)
    with pytest.raises(ValueError, match="sequence or step"):
        bt.TrainingRun(task, net_class(1, 4, 1), "d_rtrl", bt.SGD(), update="never")
    with pytest.raises(ValueError, match="no algorithm"):
        bt.TrainingRun(task, net_class(1, 4, 1), "nothing", bt.SGD())
    with pytest.raises(bt.UserError):
        bt.TrainingRun(task, net_class(5, 4, 1), "d_rtrl", bt.SGD())
