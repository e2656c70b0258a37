# SPDX-License-Identifier: Apache-2.0
"""Learners from Python: gradients, drivers, streaming, errors, threads and interrupts."""
import pickle
import signal
import threading
import time

import braintrace_cpp as bt
import numpy as np
import pytest

RNG = np.random.default_rng(0)
XS = RNG.normal(size=(12, 3)).astype("float32")
YS = RNG.normal(size=(12, 2)).astype("float32")


@pytest.fixture
def learner(net_class):
    return bt.compile(net_class(cell=bt.nn.MiniGRU(3, 4)), bt.D_RTRL, bt.zeros(3), seed=3)


def loss_of(learner):
    return lambda x, y: bt.mse(learner(x), y)


def grads_of(learner, **options):
    return learner.etrace_grad(XS, YS, step_fn=loss_of(learner), **options)


def test_a_learner_gives_gradients_by_path(learner):
    grads, losses = grads_of(learner, return_value=True)
    assert losses.shape == (12,) and float(losses.mean()) > 0
    assert set(grads) == {k for k in learner.model.state_dict() if k != "rnn/h"}
    assert grads[("out", "weight")]["bias"].shape == (2,)
    assert all(float(bt.abs(g).max()) > 0 for g in grads.values())
    assert learner.running_index == 12


def test_gradients_of_the_whole_window_agree_with_bptt(net_class):
    def run(rule, **options):
        model = net_class(cell=bt.nn.MiniGRU(3, 4))
        learner = bt.compile(model, rule, bt.zeros(3), seed=3, dtype="f64", **options)
        return grads_of(learner)

    exact, online = run("bptt"), run("d_rtrl")
    assert bt.gradient_cosine(exact, online) > 0.5
    np.testing.assert_allclose(online["out/weight/weight"], exact["out/weight/weight"],
                               rtol=1e-9)


def test_streaming_gives_the_gradients_of_the_driver(learner):
    whole = grads_of(learner, reduction="sum")
    bt.nn.init_all_states(learner.model)
    learner.reset_state()
    handle = learner.trace_loss(loss_of(learner), XS[0], YS[0])
    total = {}
    for x, y in zip(XS, YS):
        loss, grads = learner.step_grad(x, y, loss=handle)
        assert loss > 0
        total = bt.add_grads(total, grads) if total else grads
    for path, g in whole.items():
        np.testing.assert_allclose(total[path], g, rtol=1e-4, atol=1e-6)


def test_mask_reduction_and_aux(learner):
    mask = np.zeros(12, "float32")
    mask[-1] = 1

    def with_aux(x, y):
        out = learner(x)
        return bt.mse(out, y), {"out": out}

    grads, value, aux = learner.etrace_grad(XS, YS, step_fn=with_aux, mask=mask, has_aux=True,
                                            loss_output="masked", return_value=True)
    assert np.count_nonzero(value) == 1
    assert aux["out"].shape == (12, 2)
    assert grads["out/weight/bias"].shape == (2,)


def test_weights_choose_what_is_returned(learner):
    assert set(grads_of(learner, weights=[("out", "weight")])) == {
        "out/weight/bias", "out/weight/weight"}
    chosen = grads_of(learner, weights=[learner.model.out.weight])
    assert set(chosen) == {"out/weight/bias", "out/weight/weight"}


def test_python_errors_and_wrong_losses_leave_the_state_alone(learner):
    def broken(x, y):
        learner(x)
        raise LookupError("mine")

    before = learner.model.rnn.h.value
    with pytest.raises(LookupError, match="mine"):
        learner.etrace_grad(XS, YS, step_fn=broken)
    with pytest.raises(bt.UserError, match="exactly once"):
        learner.etrace_grad(XS, YS, step_fn=lambda x, y: bt.sum(x))
    np.testing.assert_array_equal(learner.model.rnn.h.value, before)
    assert learner.running_index == 0


def test_evolve_moves_the_states(learner):
    outputs = learner.etrace_evolve(XS, return_outputs=True)
    assert outputs.shape == (12, 2)
    bt.nn.init_all_states(learner.model)
    learner.reset_state()
    np.testing.assert_allclose(bt.stack([learner(x) for x in XS]), outputs, rtol=1e-6)
    assert learner.etrace_evolve(XS) is None


def test_windows_run_several_steps_in_one_call(learner):
    one_by_one = bt.stack([learner(x) for x in XS])
    bt.nn.init_all_states(learner.model)
    learner.reset_state()
    np.testing.assert_allclose(learner(bt.MultiStepData(XS)), one_by_one, rtol=1e-5, atol=1e-7)


def test_the_reference_way_of_writing_works(net_class):
    model = bt.nn.init_all_states(net_class(), batch_size=2)
    algo = bt.D_RTRL(model)
    assert not algo.is_compiled
    with pytest.raises(ValueError, match="compile_graph"):
        algo(bt.zeros((2, 3)))
    with pytest.raises(RuntimeError):
        algo.report
    algo.compile_graph(bt.zeros((2, 3)))
    assert algo(bt.ones((2, 3))).shape == (2, 2)
    assert "rnn" in algo.show_graph(return_msg=True)
    assert set(algo.hidden_states) == {("rnn", "h")}
    assert algo.get_etrace_of(("rnn", "Wz", "weight"))


def test_show_graph_prints_through_python(learner, capsys):
    learner.show_graph()
    assert "The non-etrace weight parameters" in capsys.readouterr().out


@pytest.mark.parametrize("algorithm, kind, text", [
    ("nothing", ValueError, "there are"), (3, TypeError, "class, a name or"),
    (bt.pp_prop, TypeError, "decay_or_rank")])
def test_unknown_algorithms_are_refused(net_class, algorithm, kind, text):
    with pytest.raises(kind, match=text):
        bt.compile(net_class(), algorithm, bt.zeros(3))


def test_configs_are_values(net_class):
    config = bt.ETraceConfig(trace_filter="kappa", kappa=0.5)
    assert pickle.loads(pickle.dumps(config)) == config
    assert config.replace(kappa=0.25).kappa == 0.25
    assert config != bt.ETraceConfig() and hash(config) == hash(config.replace())
    learner = bt.compile(net_class(), config, bt.zeros(3))
    assert learner.config == config
    with pytest.raises(ValueError):
        bt.ETraceConfig(trace_factorization="nothing")


def test_progress_is_a_function_or_a_bar_and_can_stop(learner):
    class Bar:
        n = 0

        def update(self, n):
            self.n += n

    bar = Bar()
    grads_of(learner, progress=bar)
    assert bar.n == 12
    calls = []
    grads_of(
        learner,
        window=1,
        progress=lambda done, total: calls.append((done, total)) or done < 3,
    )
    assert calls[-1] == (3, 12)


def test_other_threads_run_while_a_learner_does(learner):
    counts, go_on = [0], [True]

    def count():
        while go_on[0]:
            counts[0] += 1
            time.sleep(0)

    xs, ys = np.tile(XS, (400, 1)), np.tile(YS, (400, 1))
    thread = threading.Thread(target=count)
    thread.start()
    learner.etrace_grad(xs, ys, step_fn=loss_of(learner))
    go_on[0] = False
    thread.join()
    assert counts[0] > 10


def test_ctrl_c_stops_a_run_and_the_learner_lives_on(learner):
    def seconds(repeats):
        xs, ys = np.tile(XS, (repeats, 1)), np.tile(YS, (repeats, 1))
        start = time.monotonic()
        learner.etrace_grad(xs, ys, step_fn=loss_of(learner))
        return time.monotonic() - start

    # Long enough on any machine that a run which is not stopped shows.
    repeats = 2000 * max(1, round(5 / seconds(2000)))
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        xs, ys = np.tile(XS, (repeats, 1)), np.tile(YS, (repeats, 1))
        start = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        learner.etrace_grad(xs, ys, step_fn=loss_of(learner))
    assert time.monotonic() - start < 3
    assert learner(XS[0]).shape == (2,)


def test_models_may_take_and_return_trees():
    class Two(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = bt.nn.MiniGRU(3, 4)

        def update(self, data):
            h = self.rnn(data["a"] + data["b"])
            return {"h": h, "sum": bt.sum(h)}

    learner = bt.compile(Two(), "d_rtrl", {"a": bt.zeros(3), "b": bt.zeros(3)})
    out = learner({"a": XS[0], "b": XS[1]})
    assert out["h"].shape == (4,) and out["sum"].shape == ()
    grads = learner.etrace_grad({"a": XS, "b": XS}, step_fn=lambda d: learner(d)["sum"])
    assert any("W_x" in k for k in grads)


def test_training_goes_on_bit_for_bit_from_a_file(net_class, tmp_path):
    def start():
        learner = bt.compile(net_class(), "d_rtrl", bt.zeros(3), seed=5)
        return learner, bt.Adam(lr=1e-2)

    def train(learner, optimizer, steps):
        handle = learner.trace_loss(loss_of(learner), XS[0], YS[0])
        for t in steps:
            _, grads = learner.step_grad(XS[t % 12], YS[t % 12], loss=handle)
            optimizer.update(learner.model, grads)

    whole = start()
    train(*whole, range(40))
    first = start()
    train(*first, range(20))
    first[0].save(tmp_path / "run.safetensors", optimizer=first[1], step=20)
    second = start()
    assert second[0].load(tmp_path / "run.safetensors", optimizer=second[1]) == 20
    train(*second, range(20, 40))
    for path, value in whole[0].model.state_dict().items():
        assert np.array_equal(second[0].model.state_dict()[path], value), path
    assert second[0].running_index == 40


def test_damaged_checkpoints_are_refused(learner, tmp_path):
    file = tmp_path / "run.safetensors"
    learner.save(file)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(bt.UserError):
        learner.load(file)


def test_the_memory_plan_counts_the_traces(learner):
    plan = learner.memory_plan()
    stored = sum(t["value"].numpy().nbytes for t in learner.etraces())
    assert plan.total_bytes == stored > 0


def test_a_certificate_tells_the_distance_to_bptt(learner):
    before = learner.model.state_dict()
    c = learner.certificate(XS, YS, step_fn=loss_of(learner))
    assert {r.parameter for r in c.rows} == set(grads_of(learner))
    exact = {r.parameter: r for r in c.rows}["out/weight/weight"]
    assert exact.cosine > 0.9999 and 0 < c.cosine <= 1 and c.steps == 12
    assert "rnn/" in str(c) and c.states[0].largest > 0
    bt.nn.init_all_states(learner.model)
    for path, value in before.items():
        np.testing.assert_array_equal(learner.model.state_dict()[path], value)


def test_rules_are_values_that_can_be_pickled():
    rule = bt.Algorithm("pp_prop", {"decay_or_rank": 0.9})
    assert pickle.loads(pickle.dumps(rule)) == rule
    feedback = bt.Algorithm("eprop", {"feedback": "random", "random_feedback_key": 3})
    assert pickle.loads(pickle.dumps(feedback)) == feedback


def test_a_prepared_gradient_is_that_of_etrace_grad():
    calls = []

    def gradients(prepared):
        net = bt.nn.GRUCell(3, 4)
        learner = bt.compile(net, bt.D_RTRL, bt.zeros((2, 3)), batch_size=2, seed=1)

        def loss(x, y):
            calls.append(prepared)
            return bt.mse(learner(x), y)

        xs, ys = np.ones((5, 2, 3), np.float32), np.zeros((5, 2, 4), np.float32)
        if not prepared:
            return [learner.etrace_grad(k * xs, ys, step_fn=loss, return_value=True) for k in (1, 2)]
        handle = learner.prepare(xs, ys, step_fn=loss, return_value=True)
        return [handle.grad(k * xs, ys) for k in (1, 2)]

    for (want, losses), (got, again) in zip(gradients(False), gradients(True)):
        assert np.array_equal(losses, again)
        for path, g in want.items():
            assert np.array_equal(g, got[path]), path
    assert calls.count(True) == 1


def test_a_prepared_gradient_refuses_other_shapes():
    learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
    handle = learner.prepare(bt.zeros((5, 3)), bt.zeros((5, 4)),
                             step_fn=lambda x, y: bt.mse(learner(x), y))
    with pytest.raises(ValueError, match=r"sequence 0 must have the prepared shape \[5,3\]"):
        handle.grad(bt.zeros((6, 3)), bt.zeros((6, 4)))


def test_back_propagation_in_segments_gives_the_same_gradient():
    def gradient(**options):
        learner = bt.compile(bt.nn.GRUCell(3, 4), bt.BPTT, bt.zeros(3), seed=1, **options)
        return learner.etrace_grad(np.ones((7, 3)), np.zeros((7, 4)),
                                   step_fn=lambda x, y: bt.mse(learner(x), y))

    whole = gradient()
    for segments in (0, 2):
        for path, g in gradient(segments=segments).items():
            assert np.allclose(g, whole[path], rtol=1e-5, atol=1e-7), path
