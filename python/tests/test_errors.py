# SPDX-License-Identifier: Apache-2.0
"""Every mistake of the caller is a UserError that names what is wrong."""
import inspect
import re

import braintrace_cpp as bt
import numpy as np
import pytest


class NoReturn(bt.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = bt.nn.GRUCell(3, 4)

    def update(self, x):
        self.rnn(x)


def not_compiled(**options):
    return bt.D_RTRL(bt.nn.GRUCell(3, 4)).step_grad(bt.zeros(3), **options)


def compiled():
    return bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))


def compiled_losses(labels, **options):
    batch = (1,) if options else ()
    learner = bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros((*batch, 3)), **options)
    return learner.etrace_grad(bt.ones((3, *batch, 3)), labels,
                               step_fn=lambda x, y: bt.softmax_cross_entropy(learner(x), y))


@pytest.mark.parametrize("call, kind, text", [
    (lambda: bt.Adam(lr="x"), bt.UserTypeError, "Adam: lr must be a number, got 'x'"),
    (lambda: bt.Adam(amsgrad="x", lr=[1]), bt.UserTypeError, "Adam: lr must be a number"),
    (lambda: bt.nn.GRUCell("a", 3), bt.UserTypeError, "GRUCell: .* must be .*integer.*, got 'a'"),
    (lambda: bt.nn.GRUCell(3.5, 3), bt.UserTypeError, "GRUCell: .* must be .*integer.*, got 3.5"),
    (lambda: bt.nn.GRUCell((3, 4), 3), bt.UserTypeError, r"must be one integer, got \(3, 4\)"),
    (lambda: bt.nn.LIF(4, tau="x"), bt.UserTypeError, "tau must be a number, or one per unit, got .x."),
    (lambda: bt.zeros("a"), bt.UserTypeError, r"^zeros: takes \(shape: Size, .*\), got \('a'\)$"),
    (lambda: bt.zeros((1, "a")), bt.UserTypeError, r"zeros: takes .*, got \(\(1, 'a'\)\)$"),
    (lambda: bt.zeros(), bt.UserTypeError, r"zeros: takes .*, got \(\)$"),
    (lambda: bt.mse(None, bt.zeros(3)), bt.UserTypeError,
     r"^mse: takes \(prediction: ArrayLike, target: ArrayLike\), got \(None, Value\(.*\)\)$"),
    (lambda: bt.tanh(1.0, 2.0), bt.UserTypeError, r"^tanh: takes \(x: ArrayLike\), got \(1.0, 2.0\)$"),
    (lambda: bt.zeros(3, dtyp="f32"), bt.UserTypeError, r"got \(3, dtyp='f32'\)$"),
    (lambda: bt.tasks.copying().batch("x"), bt.UserTypeError,
     r"^Task.batch: takes \(count: int, first: int = 0, test: bool = False\), got \('x'\)$"),
    (lambda: bt.Value(), bt.UserTypeError, r"^Value: takes \(data: object, .*\), got \(\)$"),
    (lambda: bt.nn.GRUCell(2, 3).states(3), bt.UserTypeError, "states: kind must be .*, got 3$"),
    (lambda: bt.element_wise([1.0], 3), bt.UserTypeError, "must be a function, got 3"),
    (lambda: bt.SGD(schedule=3), bt.UserTypeError, "schedule must be a function .*, got 3"),
    (lambda: bt.from_dlpack(3), bt.UserTypeError, "from_dlpack: .*__dlpack__.*, got 3"),
    (lambda: bt.nn.CurrentProj(bt.nn.Linear(1, 1), 3, bt.nn.LIF(1)), bt.UserTypeError,
     "output must be CUBA, COBA or MgBlock, got 3"),
    (lambda: bt.Algorithm("snap", {"n": "x"}), bt.UserTypeError,
     "^snap: n must be an integer, got 'x'$"),
    (lambda: bt.nn.GRUCell(2, 3).train("x"), bt.UserTypeError,
     r"^GRUCell.train: takes \(mode: bool = True\), got \('x'\)$"),
    (lambda: bt.nn.init_all_states(3), bt.UserTypeError, "must be a .*Module, got 3"),
    (lambda: bt.Value([1.0], "f16"), bt.UserTypeError, "no element type 'f16'; there are f32"),
    (lambda: bt.Value([1.0], "nothing"), bt.UserTypeError, "no element type 'nothing'"),
    (lambda: bt.zeros(3).reshape("a"), bt.UserTypeError, "integer"),
    (lambda: not_compiled(loss=None), bt.UserValueError, r"call compile_graph\(...\) first"),
    (lambda: compiled().step_grad(bt.zeros(3), loss=None), bt.UserTypeError, "step_grad"),
    (lambda: compiled().etrace_grad(bt.zeros((5, 3)), step_fn=None), bt.UserTypeError,
     "etrace_grad"),
    (lambda: bt.compile(NoReturn(), "d_rtrl", bt.zeros(3)), bt.UserTypeError,
     "NoReturn.update returned None"),
    (lambda: bt.tasks.copying(seed="x"), bt.UserTypeError, "copying: seed must be an integer"),
    (lambda: bt.softmax(bt.ones(3), 1), bt.UserValueError, "^softmax: axis 1 is out of range"),
    (lambda: bt.softmax_cross_entropy(bt.ones((2, 3)), np.int32([1, 3])), bt.UserValueError,
     r"^softmax_cross_entropy: label 3 is outside \[0, 3\)"),
    (lambda: compiled_losses(np.int32([0, 1, 7])), bt.UserValueError,
     r"^softmax_cross_entropy: label 7 is outside \[0, 4\)"),
    (lambda: compiled_losses(np.int32([[0], [1], [-2]]), batch_size=1, vmap=True),
     bt.UserValueError, r"^softmax_cross_entropy: label -2 is outside \[0, 4\)"),
    (lambda: bt.Algorithm("d_rtrl", {"trace_dtype": "int8"}), bt.UserTypeError,
     "^d_rtrl: trace_dtype must be f32, f64 or bf16, got 'int8'$"),
    (lambda: bt.Algorithm("d_rtrl", {"trace_dtype": np.float16}), bt.UserTypeError,
     "trace_dtype must be f32, f64 or bf16, got .*float16"),
    (lambda: bt.Algorithm("d_rtrl", {"trace_dtype": "i64"}), bt.UserTypeError,
     "trace_dtype must be f32, f64 or bf16, got 'i64'"),
])
def test_mistakes_are_user_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def gradient(step_fn=None, sequence=np.ones((5, 3), "float32"), **options):
    learner = compiled()
    return learner.etrace_grad(sequence, step_fn=step_fn or (lambda x: bt.sum(learner(x))),
                               **options)


def gru(**options):
    return bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros(3), **options)


def short_run(**options):
    net = bt.nn.Sequential(bt.nn.GRUCell(1, 4), bt.nn.Linear(4, 1))
    return bt.TrainingRun(bt.tasks.integrator(steps=5), net, "d_rtrl", bt.Adam(), batch=2,
                          **options)


@pytest.mark.parametrize("call, kind, text", [
    (lambda: gradient(window="a"), bt.UserTypeError, "window must be an integer, got 'a'"),
    (lambda: gradient(window_bytes=-1), bt.UserValueError, "window_bytes must be >= 0, got -1"),
    (lambda: gradient(reduction=None), bt.UserTypeError, "reduction must be a name, got None"),
    (lambda: gradient(progress=3), bt.UserTypeError, "progress must be a function .*, got 3"),
    (lambda: gradient(weights=3), bt.UserTypeError, "weights must be names, .*, got 3"),
    (lambda: gradient(weights=[]), bt.UserValueError, "weights is empty"),
    (lambda: gradient(step_fn=lambda x: None), bt.UserTypeError,
     "the loss function must return a scalar, got NoneType"),
    (lambda: gradient(step_fn=lambda x: (bt.sum(x), 1)), bt.UserTypeError,
     r"scalar, got tuple; for \(loss, aux\) give has_aux=True"),
    (lambda: gradient(has_aux=True), bt.UserTypeError, r"must return \(loss, aux\)"),
    (lambda: gradient(sequence=lambda t: None, steps=3), bt.UserTypeError,
     "returned None for step 0"),
    (lambda: bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros(3), seed="a"), bt.UserTypeError,
     "^compile: seed must be an integer >= 0, got 'a'$"),
    (lambda: gru(executor="interpretr"), bt.UserValueError,
     "^compile: executor must be plan or interpreter, got 'interpretr'$"),
    (lambda: gru(compat="yes"), bt.UserTypeError, "compat must be True or False, got 'yes'"),
    (lambda: gru(check_finite="a"), bt.UserTypeError, "check_finite must be True or False, got"),
    (lambda: gru(mixing=3), bt.UserTypeError, "^compile: mixing must be a name, got 3$"),
    (lambda: gru(history=3), bt.UserTypeError, "^compile: history must be a name, got 3$"),
    (lambda: gru(control_flow=3), bt.UserTypeError, "control_flow must be a .*, got 3"),
    (lambda: gru(control_flow={"cond": 3}), bt.UserTypeError,
     "^control_flow: cond must be a name, got 3$"),
    (lambda: gradient(loss_sink=3), bt.UserTypeError, "loss_sink must be a function .*, got 3"),
    (lambda: bt.compile(bt.nn.GRUCell(3, 4), "auto", bt.zeros(3)), bt.UserTypeError,
     "Auto: memory must be .*, got None"),
    (lambda: bt.SnAp(bt.nn.GRUCell(3, 4), n=1.5), bt.UserTypeError,
     "^snap: n must be an integer, got 1.5$"),
    (lambda: short_run(seed=-1), bt.UserTypeError, "seed must be an integer >= 0, got -1"),
    (lambda: short_run().train(updates=2.5), bt.UserTypeError,
     r"^TrainingRun.train: takes \(updates: int, .*, got \(2.5, "),
    (lambda: short_run().train(updates=-1), bt.UserValueError, "updates must be >= 0, got -1"),
])
def test_options_of_learners_and_runs_are_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("make, kind, text", [
    (lambda: bt.nn.VanillaRNNCell(2, 3, activation=3), TypeError, "activation must be the name of .*, got 3"),
    (lambda: bt.nn.GRUCell(2, 3, activation=None), TypeError, "activation must be .*, got None"),
    (lambda: bt.nn.GRUCell(2, 3, activation=bt.nn.ReLU), TypeError, "activation must be .*ReLU"),
    (lambda: bt.nn.GRUCell(2, 3, activation="tnah"), ValueError, "GRUCell: activation: .*'tnah'"),
    (lambda: bt.nn.Apply([1.0]), TypeError, r"Apply: f must be .*, got \[1.0\]"),
    (lambda: bt.nn.LIF(3, tau="5"), TypeError, "LIF: tau must be a number, or one per unit, got '5'"),
    (lambda: bt.nn.LIF(3, tau=None), TypeError, "LIF: tau must be .*, got None"),
    (lambda: bt.nn.LIF(3, tau=float("nan")), ValueError, "LIF: tau must be finite, got nan"),
    (lambda: bt.nn.LIF(3, spk_fun="x"), ValueError, "LIF: spk_fun: .*'x'"),
    (lambda: bt.nn.LIF(3, V_init=None), TypeError, "LIF: V_init must be numbers, .*, got None"),
    (lambda: bt.nn.LIF(-1), ValueError, "LIF: in_size must be >= 0, got -1"),
    (lambda: bt.nn.STP((2, -3)), ValueError, r"STP: in_size must be >= 0, got \(2, -3\)"),
    (lambda: bt.nn.LRUCell(-1, 3), ValueError, "LRUCell: d_model must be >= 0, got -1"),
    (lambda: bt.nn.LRUCell(0, 3), ValueError, "LRUCell: d_model must be >= 1, got 0"),
    (lambda: bt.nn.Linear(2, 3, w_init="x"), TypeError, "Linear: w_init must be .*, got 'x'"),
    (lambda: bt.nn.Linear(2, 3, w_init=bt.nn.ReLU()), TypeError, "w_init must be .*, got ReLU"),
    (lambda: bt.nn.Linear(2, 3, b_init=float("inf")), ValueError, "b_init must be finite, got inf"),
    (lambda: bt.nn.OneToOne(2, w_init=None), TypeError, "OneToOne: w_init must be .*, got None"),
    (lambda: bt.nn.Linear(2, 3, w_mask="x"), TypeError, "Linear: w_mask must be .*, got 'x'"),
    (lambda: bt.nn.LoRA(2, 1, 3, base_module=3), TypeError, "LoRA: base_module: .* got 3"),
    (lambda: bt.nn.DeltaProj(3, bt.nn.LIF(2)), TypeError, "DeltaProj: comm: .* got 3"),
    (lambda: bt.nn.DeltaProj(bt.nn.Linear(2, 2), bt.nn.ReLU()), TypeError, "post must be a neuron"),
    (lambda: bt.nn.SparseLinear(3), TypeError, "SparseLinear: structure must be .*, got 3"),
    (lambda: bt.nn.AllToAll(2, 2, include_self=None), TypeError, "include_self must be True or False"),
    (lambda: bt.nn.LayerNorm(3, use_bias=float("nan")), TypeError, "use_bias must be True or False"),
    (lambda: bt.nn.LayerNorm(3, epsilon=float("inf")), ValueError, "epsilon must be .* finite, got inf"),
    (lambda: bt.nn.Conv1d(1, 2, padding=1.5), TypeError, "Conv1d: padding must be .*, got 1.5"),
    (lambda: bt.nn.LeakyReLU(float("nan")), ValueError, "negative_slope must be a number, got nan"),
    (lambda: bt.nn.CELU(-1.0), ValueError, "CELU: alpha must be > 0, got -1"),
    (lambda: bt.nn.RReLU(0.1, float("inf")), ValueError, "RReLU: low must be <= high, both finite")])
def test_arguments_of_layers_are_refused_when_it_is_made(make, kind, text):
    with pytest.raises(kind, match=text) as caught:
        make()
    assert isinstance(caught.value, bt.UserError)


def test_weights_may_be_one_name_or_one_state():
    learner = compiled()
    for weights in ("Wz/weight", learner.model.Wz.weight, ["Wz/weight"]):
        grads = learner.etrace_grad(np.ones((5, 3), "float32"), weights=weights,
                                    step_fn=lambda x: bt.sum(learner(x)))
        assert set(grads) == {"Wz/weight/bias", "Wz/weight/weight"}


def public_functions():
    for place in (bt, bt.init, bt.schedule, bt.tasks, bt.data):
        for name, item in vars(place).items():
            if inspect.isbuiltin(item) and not name.startswith("_"):
                yield f"{place.__name__}.{name}", item


@pytest.mark.parametrize("name, function", public_functions())
def test_no_wrong_argument_raises_anything_but_a_user_error(name, function):
    for given in (object(), "x", -1, 3.5, None, [1, 2], {}, test_other_wrong_inputs_get_no_hint):
        for count in range(4):
            try:
                function(*[given] * count)
            except bt.UserError as error:
                assert not re.search("incompatible function|C\\+\\+|_core|<class", str(error)), error


def test_inputs_in_batches_without_a_batch_size_are_told_apart():
    with pytest.raises(bt.UserError, match="the inputs fit with batch_size=5"):
        bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros((5, 3)))


def test_other_wrong_inputs_get_no_hint():
    with pytest.raises(bt.UserError) as found:
        bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros((5, 7)))
    assert "batch_size" not in str(found.value)


def test_numpy_arrays_of_every_type_come_in_as_before():
    for name in ("float16", "float32", "float64", "int8", "uint16", "int64", ">f4", ">f8", ">i4"):
        given = np.arange(6).reshape(2, 3).astype(name)
        for array in (given, given.T, given[:, ::2]):
            v = bt.Value(array)
            assert v.dtype == (np.float32 if given.dtype.kind == "f" else np.int32)
            np.testing.assert_array_equal(v, array)
    assert bt.Value(np.array([True, False])).tolist() == [True, False]
    assert bt.Value(np.float64(1e300) * np.ones(1), "f64").tolist() == [1e300]
    with pytest.raises(bt.UserValueError, match="32 bits"):
        bt.Value(np.array([2**40]))


def test_examples_without_the_axis_of_the_batch_are_named():
    with pytest.raises(bt.UserError, match=r"with batch_size=2 inputs begin with an axis of that size, got \(3,\)"):
        bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3), batch_size=2)


def test_an_unknown_option_lists_those_there_are():
    with pytest.raises(bt.UserTypeError, match="d_rtrl: no argument 'not_an_option'; .*decay_or_rank.*history"):
        bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3), not_an_option="deep")


def test_a_reservoir_is_told_which_rules_train_its_readout():
    class Reservoir(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.h, self.out = bt.HiddenState(4), bt.nn.Linear(4, 2)

        def update(self, x):
            self.h.value = bt.tanh(0.5 * self.h.value + x)
            return self.out(self.h.value)

    with pytest.raises(bt.CompilationError, match="BPTT and ExactRTRL train the rest"):
        bt.compile(Reservoir(), bt.D_RTRL, bt.zeros(4))
    learner = bt.compile(Reservoir(), bt.BPTT, bt.zeros(4))
    handle = learner.trace_loss(lambda x, y: bt.mse(learner(x), y), bt.zeros(4), bt.zeros(2))
    _, grads = learner.step_grad(bt.ones(4), bt.ones(2), loss=handle)
    assert np.abs(grads["out/weight/weight"]).max() > 0


def test_values_differ_from_whatever_they_are_not(net):
    learner = bt.compile(net, bt.D_RTRL, bt.zeros(3))
    values = [bt.ETraceConfig(), learner.algorithm, bt.ControlFlowPolicy(), learner.graph.diagnostics[0],
              bt.parse_graph("in %0:f32[1]\nout %0"), bt.nn.Surrogate("Sigmoid"),
              learner.graph.hidden_groups[0].hidden_invars[0]]
    for value in values:
        for other in (None, "d_rtrl", 3):
            assert value != other and other != value
            assert value not in [other]
        assert value == value
