# SPDX-License-Identifier: Apache-2.0
"""Learning rules from Python: the third factor, engines under their names, signals, and every
error of the rules and drivers."""
import braintrace_cpp as bt
import numpy as np
import pytest

RNG = np.random.default_rng(1)
STEPS, BATCH, LEAK = 5, 2, 0.8
XS = RNG.normal(size=(STEPS, BATCH, 3))
YS = RNG.normal(size=(STEPS, BATCH, 4))
MODULATORS = RNG.normal(size=(STEPS, BATCH, 4))


class Leaky(bt.nn.Module):
    """h' = 0.8 h + x w: its trace is the filtered input."""

    def __init__(self):
        super().__init__()
        self.weight = bt.nn.Linear(3, 4, b_init=None)
        self.h = bt.HiddenState(4)

    def update(self, x):
        self.h.value = LEAK * self.h.value + self.weight(x)
        return self.h.value


def leaky(rule=bt.ThreeFactor, **options):
    return bt.compile(Leaky(), rule, bt.zeros((BATCH, 3)), batch_size=BATCH, seed=3, dtype="f64",
                      **options)


def by_hand(modulators):
    """sum over steps and samples of modulator times trace."""
    trace, out = np.zeros((BATCH, 3)), np.zeros((3, 4))
    for x, m in zip(XS, modulators):
        trace = LEAK * trace + x
        out += np.einsum("bi,bo->io", trace, np.broadcast_to(m, (BATCH, 4)))
    return out


def only(grads):
    (value,) = grads.values()
    return np.asarray(value)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_a_modulator_comes_with_the_call():
    learner = leaky()
    grads = learner.etrace_grad(
        bt.Value(XS, "f64"), bt.Value(YS, "f64"), bt.Value(MODULATORS, "f64"), reduction="sum",
        step_fn=lambda x, y, m: bt.mse(learner.update(x, modulator=m), y))
    close(only(grads), by_hand(MODULATORS))
    with pytest.raises(bt.UserRuntimeError, match="no modulator was given"):
        learner.etrace_grad(XS, YS, step_fn=lambda x, y: bt.mse(learner(x), y))


def test_a_standing_modulator_stays_until_replaced():
    learner = leaky()
    assert learner.modulator is None
    learner.modulator = 0.5
    assert float(learner.modulator) == 0.5
    loss = lambda x, y: bt.mse(learner(x), y)  # noqa: E731
    xs, ys = bt.Value(XS, "f64"), bt.Value(YS, "f64")
    close(only(learner.etrace_grad(xs, ys, step_fn=loss, reduction="sum")), by_hand([0.5] * STEPS))
    learner.set_modulator(None)
    assert learner.modulator is None


def test_modulators_go_with_a_sequence_and_need_no_loss():
    m, xs = bt.Value(MODULATORS, "f64"), bt.Value(XS, "f64")
    learner = leaky()
    grads = learner.etrace_grad(xs, step_fn=None, modulators=m, reduction="sum")
    close(only(grads), by_hand(MODULATORS))

    learner = leaky()
    total = sum(only(learner.modulated_grad(xs[t], modulator=m[t])[1]) for t in range(STEPS))
    close(total, by_hand(MODULATORS))

    learner = leaky()
    prepared = learner.prepare(xs, step_fn=None, modulators=bt.zeros((STEPS,)), reduction="sum",
                               carry_traces=False)
    assert not only(prepared.grad(xs)).any()
    learner.model.h.value = bt.zeros((BATCH, 4), "f64")
    close(only(prepared.grad(xs, modulators=m)), by_hand(MODULATORS))


def test_lanes_have_modulators_of_their_own():
    learner = leaky(vmap=True)
    grads = learner.etrace_grad(bt.Value(XS, "f64"), step_fn=None, reduction="sum",
                                modulators=bt.Value(MODULATORS, "f64"))
    close(only(grads), by_hand(MODULATORS))


def test_back_propagation_and_certificates_of_lanes_are_those_of_a_batch():
    def judged(**options):
        exact, online = leaky(bt.BPTT, **options), leaky(bt.D_RTRL, **options)
        data = bt.Value(XS, "f64"), bt.Value(YS, "f64")
        grads = exact.etrace_grad(*data, step_fn=lambda x, y: bt.mse(exact(x), y))
        (row,) = online.certificate(*data, step_fn=lambda x, y: bt.mse(online(x), y)).rows
        return only(grads), row

    (lanes, lane_row), (batch, batch_row) = judged(vmap=True), judged()
    close(lanes, batch)
    close(lane_row.bptt_norm, batch_row.bptt_norm)
    assert lane_row.verdict == "exact" and lane_row.error < 1e-12


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_a_bias_in_front_of_a_batch_norm_has_no_gradient_but_rounding(dtype):
    class Centred(Leaky):
        def __init__(self):
            super().__init__()
            self.weight, self.norm = bt.nn.Linear(7, 4), bt.nn.BatchNorm0d(4)

        def update(self, x):
            drive = self.norm(self.weight(bt.concatenate([x, self.h.value], axis=-1)))
            self.h.value = 0.7 * self.h.value + bt.tanh(drive)
            return self.h.value

    learner = bt.compile(Centred(), "rtrl", bt.zeros((2, 3)), batch_size=2, seed=3, dtype=dtype)
    c = learner.certificate(XS, YS, step_fn=lambda x, y: bt.mse(learner(x), y))
    assert c.holds(1e-6 if dtype == "f64" else 1e-3)
    (row,) = [r for r in c.rows if r.parameter == "weight/weight/bias"]
    assert row.zero and row.error == 0 and row.bptt_norm > 0
    assert "the gradient of weight/weight/bias is zero up to rounding" in str(c)


def test_a_loop_that_counts_to_a_constant_learns():
    class Settling(Leaky):
        def update(self, x):
            drive = self.weight(x)
            _, self.h.value = bt.while_loop(
                lambda c: c[0] < 3, lambda c: (c[0] + 1, LEAK * c[1] + bt.tanh(drive)),
                (bt.Value(0, "i32"), self.h.value))
            return self.h.value

    def compiled(rule, **options):
        return bt.compile(Settling(), rule, bt.zeros((BATCH, 3)), batch_size=BATCH, seed=3,
                          dtype="f64", **options)

    learner = compiled(bt.D_RTRL)
    (row,) = learner.certificate(bt.Value(XS, "f64"), bt.Value(YS, "f64"),
                                 step_fn=lambda x, y: bt.mse(learner(x), y)).rows
    assert row.verdict == "exact" and row.error < 1e-12 and row.bptt_norm > 0
    kept = compiled(bt.D_RTRL, counted_loops="keep")
    with pytest.raises(bt.UserError, match="while"):
        kept.certificate(bt.Value(XS, "f64"), bt.Value(YS, "f64"),
                         step_fn=lambda x, y: bt.mse(kept(x), y))


def test_engines_have_names_and_are_the_bases_of_their_rules():
    assert bt.ParamDim is bt.ParamDimVjpAlgorithm and bt.IODim is bt.IODimVjpAlgorithm
    for rule in (bt.D_RTRL, bt.EProp, bt.OSTLRecurrent, bt.SnAp, bt.ThreeFactor, bt.DNI):
        assert issubclass(rule, bt.ParamDimVjpAlgorithm)
    assert issubclass(bt.pp_prop, bt.IODim) and issubclass(bt.OSTLFeedforward, bt.IODim)
    assert issubclass(bt.UORO, bt.RandomProjection)
    assert bt.HybridDimVjpAlgorithm is bt.Hybrid
    assert issubclass(bt.D_RTRL, bt.ETraceVjpAlgorithm)


def gradients(rule, **options):
    learner = leaky(rule, **options)
    return only(learner.etrace_grad(bt.Value(XS, "f64"), bt.Value(YS, "f64"),
                                    step_fn=lambda x, y: bt.mse(learner(x), y)))


def test_an_engine_takes_any_config_of_its_factorization():
    leak = bt.ETraceConfig(temporal_recursion="scalar_leak", decay=0.3)
    close(gradients(bt.ParamDimVjpAlgorithm, config=leak), gradients(leak))
    close(gradients(bt.ParamDim), gradients(bt.D_RTRL))
    assert np.abs(gradients(leak) - gradients(bt.D_RTRL)).max() > 1e-3
    io = bt.ETraceConfig(trace_factorization="io_factorized", decay=(0.9, 0.2))
    close(gradients(bt.IODim, config=io), gradients(bt.pp_prop, decay_or_rank=(0.9, 0.2)))
    close(gradients(bt.IODimVjpAlgorithm, decay_or_rank=0.9),
          gradients(bt.pp_prop, decay_or_rank=0.9))
    projected = bt.ETraceConfig(trace_factorization="random_projection",
                                recurrence_scope="coupled")
    close(gradients(bt.RandomProjection, config=projected, projection_key=7),
          gradients(bt.UORO, projection_key=7))
    assert np.abs(gradients(bt.RandomProjection) - gradients(bt.RandomProjection,
                                                             projection_key=7)).max() > 1e-6


def test_kappa_filter():
    f = bt.KappaFilter(bt.zeros(2), 0.9)
    v = np.zeros(2)
    for x in RNG.normal(size=(4, 2)):
        v = 0.9 * v + 0.1 * x
        np.testing.assert_allclose(f.update(x), v, rtol=1e-5)
    f.reset()
    assert not np.asarray(f.value).any() and f.kappa == 0.9
    f.reset(3)
    assert f.value.shape == (3, 2)


def test_fixed_random_feedback():
    f = bt.FixedRandomFeedback(2, 5, 11, init_scale=0.5)
    y = RNG.normal(size=(7, 2)).astype("float32")
    np.testing.assert_allclose(f.project(y), y @ np.asarray(f.matrix), rtol=1e-5)
    np.testing.assert_array_equal(bt.FixedRandomFeedback(2, 5, 11, init_scale=0.5).matrix, f.matrix)
    assert np.abs(np.asarray(bt.FixedRandomFeedback(200, 200, 1).matrix)).std() < 0.1
    g = bt.FixedRandomFeedback.from_matrix(np.eye(2, dtype="float32"))
    np.testing.assert_array_equal(g(y), y)


class Grouped(bt.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = bt.nn.Conv2d((3, 3, 4), 6, 2, groups=2)
        self.h = bt.HiddenState((3, 3, 6))

    def update(self, x):
        self.h.value = 0.5 * self.h.value + bt.tanh(self.conv(x))
        return self.h.value


def test_grouped_convolutions_are_traced():
    xs, ys = RNG.normal(size=(4, 2, 3, 3, 4)), RNG.normal(size=(4, 2, 3, 3, 6))
    learner = bt.compile(Grouped(), bt.D_RTRL, bt.zeros((2, 3, 3, 4)), batch_size=2, dtype="f64")
    (row,) = learner.certificate(xs, ys, step_fn=lambda x, y: bt.mse(learner(x), y)).rows
    assert row.verdict == "exact" and row.error < 1e-12 and row.bptt_norm > 1e-3


# ---- what is refused ----


class Looked(bt.nn.Module):
    """A table read by rows: its entries drive no single position."""

    def __init__(self):
        super().__init__()
        self.table = bt.nn.Embedding(5, 4)
        self.h = bt.HiddenState(4)

    def update(self, x):
        self.h.value = 0.5 * self.h.value + self.table(x)
        return self.h.value


def run(rule, call=None, **options):
    learner = leaky(rule, **options)
    return learner.etrace_grad(XS, YS, step_fn=call or (lambda x, y: bt.mse(learner(x), y)))


def with_options(rule=bt.D_RTRL, rule_options=None, **options):
    learner = leaky(rule, **(rule_options or {}))
    return learner.etrace_grad(XS, YS, step_fn=lambda x, y: bt.mse(learner(x), y), **options)


def windowed_in_a_step():
    learner = leaky(bt.D_RTRL)
    return learner.etrace_grad(
        XS, YS, step_fn=lambda x, y: bt.mse(learner(bt.MultiStepData(x.reshape(1, 2, 3)))[0], y))


def without_feedback():
    learner = leaky(bt.EProp, feedback="random", random_feedback_key=1)
    learner.set_feedback({})
    return learner.etrace_grad(XS, YS, step_fn=lambda x, y: bt.mse(learner(x), y))


def evolve(*sequences, **options):
    return leaky(bt.D_RTRL).etrace_evolve(*sequences, **options)


MULTI = {"vjp_method": "multi-step"}
PER_PARAM = bt.ETraceConfig()
IO = bt.ETraceConfig(trace_factorization="io_factorized", decay=0.9)
BOOTSTRAPPED = bt.ETraceConfig(learning_signal="bootstrapped")

VALUE = [
    (lambda: leaky(bt.D_RTRL, vjp_method="double-step"), "single-step or multi-step"),
    (lambda: leaky(bt.pp_prop, decay_or_rank=1.0), r"decay .*\[0, 1\)"),
    (lambda: leaky(bt.pp_prop, decay_or_rank=0), "rank"),
    (lambda: leaky(bt.D_RTRL, config=IO), "per_param"),
    (lambda: leaky(bt.IODim, config=PER_PARAM), "io_factorized"),
    (lambda: leaky(bt.RandomProjection, config=PER_PARAM), "random_projection"),
    (lambda: leaky(bt.pp_prop, decay_or_rank=(0.1, 0.2, 0.3)), "two entries, got 3"),
    (lambda: bt.D_RTRL(Leaky())(bt.zeros(3)), r"call compile_graph\(...\) first"),
    (lambda: leaky(bt.D_RTRL).get_etrace_of("h"), "no eligibility trace"),
    (lambda: leaky(bt.EProp, kappa_filter_decay=1.0), r"kappa.*\[0, 1\)"),
    (lambda: bt.KappaFilter(bt.zeros(2), 1.0), r"kappa.*\[0, 1\)"),
    (lambda: leaky(bt.EProp, feedback="adaptive"), "symmetric .*random"),
    (lambda: leaky(bt.EProp, feedback="random"), "random_feedback_key"),
    (lambda: leaky(bt.ThreeFactor, **MULTI), "single-step"),
    (lambda: leaky(bt.UORO, projection_eps=0.0), "projection_eps"),
    (lambda: with_options(mask=np.ones(3)), r"mask must have shape \(5,\)"),
    (lambda: with_options(reduction="max"), "reduction must be mean or sum"),
    (lambda: with_options(loss_output="all"), "loss_output"),
    (lambda: with_options(weights=["nobody"]), "no parameter 'nobody'"),
    (lambda: with_options(chunk_size=5), "chunk_size 5 needs vjp_method multi-step"),
    (lambda: with_options(rule_options=MULTI, chunk_size=2), "2 does not divide the length 5"),
    (lambda: with_options(chunk_size=0), "chunk_size must be >= 1"),
    (lambda: with_options(rule_options={**MULTI, "vmap": True}, chunk_size=5), "under vmap"),
    (lambda: with_options(rule_options={**MULTI, "vmap": True}, window=2),
     "under vmap: window must be 0 or 1, got 2"),
    (lambda: leaky(threads=-1), r"compile: threads must be 0 .* to 1024, got -1"),
    (lambda: leaky(bt.UORO).set_rule_input("sgin", 1.0), "UORO has no input 'sgin'; there are nu/0"),
    (lambda: leaky(bt.D_RTRL).set_feedback({0: np.eye(4)}), "D_RTRL sends its signal through no"),
    (lambda: leaky(bt.EProp, feedback="random", random_feedback_key=1).set_feedback({2: np.eye(4)}),
     "no group 2 takes feedback; there are 0"),
    (lambda: leaky("nothing"), "no algorithm 'nothing'; there are"),
    (lambda: evolve(XS, YS[:3]), "one length, got 5 and 3"),
    (lambda: evolve(1.0), "is a scalar"),
    (lambda: evolve(), "at least one sequence"),
    (lambda: evolve(XS[:0]), "empty"),
    (lambda: leaky().set_modulator(np.ones(3)), "does not fit group 0"),
    (lambda: leaky().update(XS[0], modulator=np.ones(3)), "does not fit group 0"),
    (lambda: leaky(bt.D_RTRL).update(XS[0], modulator=1.0), "no modulatory signal"),
    (lambda: leaky().update(bt.MultiStepData(XS), modulator=1.0), "goes with one step"),
    (lambda: with_options(modulators=np.ones(5)), "no modulatory signal"),
    (lambda: leaky().etrace_grad(XS, step_fn=None, modulators=np.ones(4)), "axis of 5 steps"),
]
TYPE = [
    (lambda: leaky(bt.D_RTRL, config={"decay": 1}), "config must be an ETraceConfig"),
    (lambda: leaky(PER_PARAM, config=PER_PARAM), "drop config="),
    (lambda: leaky().set_modulator([1.0, 2.0]), "number or an array, got list"),
    (lambda: leaky().update(XS[0], modulator=(1.0,)), "number or an array, got tuple"),
    (lambda: leaky().modulated_grad(XS[0], modulator=[1.0]), "number or an array, got list"),
    (lambda: leaky().modulated_grad(XS[0], modulator=None), "got NoneType"),
    (lambda: with_options(chunk_size=2.0), "chunk_size must be an integer, got 2.0"),
    (lambda: with_options(chunk_size=True), "chunk_size must be an integer, got True"),
    (lambda: evolve(XS, chunk_size="2"), "chunk_size must be an integer"),
    (lambda: evolve(bt.MultiStepData(XS)), "plain arrays, got MultiStepData"),
    (lambda: evolve(bt.SingleStepData(XS)), "plain arrays, got SingleStepData"),
    (lambda: leaky().etrace_grad(XS, step_fn=None), "step_fn must be a function"),
    (lambda: run(bt.D_RTRL, call="loss"), "step_fn must be a function"),
    (lambda: leaky(3), "algorithm must be"),
]
OTHER = [
    (windowed_in_a_step, bt.UserNotImplementedError, "MultiStepData under a gradient"),
    (lambda: bt.compile(Looked(), bt.SnAp, bt.Value(np.array(1))), bt.UserNotImplementedError,
     "SnAp"),
    (lambda: leaky(BOOTSTRAPPED), bt.UserNotImplementedError, "DNI"),
    (lambda: bt.compile(bt.nn.GRUCell(3, 40), bt.SnAp, bt.zeros(3),
                        snap_max_jacobian_elements=9), bt.NotSupportedError, "9"),
    (lambda: run(bt.ThreeFactor), bt.UserRuntimeError, "no modulator was given"),
    (lambda: run(bt.DNI), bt.UserRuntimeError, "no synthetic gradient was given"),
    (without_feedback, bt.UserRuntimeError, "feedback"),
    (lambda: bt.D_RTRL(Leaky()).report, bt.UserRuntimeError, "report before compile_graph"),
    (lambda: bt.compile(bt.nn.Linear(3, 4), bt.D_RTRL, bt.zeros(3)), bt.CompilationError,
     "nothing to trace"),
]
VALUE += [  # gradients that do not fit
    (lambda: bt.SGD(lr=1.0).update(leaky().model, {"nobody": bt.zeros(3)}),
     "no parameter 'nobody'"),
    (lambda: bt.add_grads({"a": bt.zeros(2)}, {"a": bt.zeros(3)}), "'a' has shapes"),
]
OTHER += [(call, bt.UserValueError, text) for call, text in VALUE]
OTHER += [(call, bt.UserTypeError, text) for call, text in TYPE]


@pytest.mark.parametrize("call, kind, text", OTHER)
def test_every_error_of_the_rules_and_drivers(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
