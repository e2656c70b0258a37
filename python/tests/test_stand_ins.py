# SPDX-License-Identifier: Apache-2.0
"""What stands in for brainstate, braintools and jax, and what notebooks show."""
import braintrace_cpp as bt
import numpy as np
import pytest
from braintrace_cpp import brainstate, braintools, jax


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


# ---- the length of a step ----

def test_layers_are_made_with_the_dt_of_the_environment():
    x = bt.ones(3) * 0.4
    with brainstate.environ.context(dt=0.5):
        told = bt.nn.init_all_states(brainstate.nn.LIF(3, tau=10.0))
        given = bt.nn.init_all_states(bt.nn.LIF(3, tau=10.0, dt=1.0))
    other = bt.nn.init_all_states(bt.nn.LIF(3, tau=10.0, dt=0.5))
    for layer in (told, given, other):
        layer(x)
    np.testing.assert_array_equal(told.V.value, other.V.value)
    assert float(given.V.value[0]) > float(told.V.value[0])


@pytest.mark.parametrize("name", [n for n in bt.nn.__all__ if "dt=1" in (
    getattr(getattr(bt.nn, n), "__doc__", None) or "").split("\n")[0]])
def test_every_layer_with_a_dt_is_told(name):
    sizes = (3, 2) if name.startswith("Leaky") else (3,)
    with brainstate.environ.context(dt=0.25):
        layers = [getattr(bt.nn, name)(*sizes), getattr(bt.nn, name)(*sizes, dt=0.25)]
    a, b = (str(bt.trace_step(bt.nn.init_all_states(m), bt.zeros(3)).program) for m in layers)
    assert a == b
    assert a != str(bt.trace_step(bt.nn.init_all_states(
        getattr(bt.nn, name)(*sizes, dt=1.0)), bt.zeros(3)).program)


def test_the_environment_says_what_is_not_in_it():
    environ = brainstate.environ
    with pytest.raises(bt.UserValueError, match="'dt' was not set"):
        environ.get_dt()
    assert (environ.get("dt", 0.1), environ.get("precision")) == (0.1, 32)
    with environ.context(dt=0.1, precision=64):
        assert (environ.get_dt(), bt.zeros(2).dtype) == (0.1, np.float64)
    assert bt.zeros(2).dtype == np.float32
    for settings, text in (({"fit": True}, r"no 'fit' here; model.train\(\)"),
                           ({"dt": "1 ms"}, "dt must be a number"), ({"dt": 0}, "dt must be > 0"),
                           ({"precision": 16}, "precision must be 32 or 64, got 16")):
        with pytest.raises(bt.UserError, match=text):
            environ.set(**settings)


def test_dt_is_not_changed_behind_layers_that_were_told_another():
    layer = bt.nn.Expon(3)
    with pytest.raises(bt.UserValueError, match="a layer Expon has dt=1; set dt before"):
        brainstate.environ.set(dt=0.5)
    del layer
    with brainstate.environ.context(dt=0.5):
        pass


# ---- initialisers, spike functions, activations ----

@pytest.mark.parametrize("made, want", [
    (brainstate.init.Normal(0.0, scale=0.1), bt.init.normal(0.0, 0.1)),
    (braintools.init.Normal(std=0.1), bt.init.normal(0.0, 0.1)),
    (brainstate.init.Uniform(-1.0, max_val=1.0), bt.init.uniform(-1.0, 1.0)),
    (braintools.init.Uniform(low=-1.0), bt.init.uniform(-1.0, 1.0)),
    (brainstate.nn.init.KaimingNormal(scale=3.0), bt.init.kaiming_normal(scale=3.0)),
    (braintools.init.KaimingNormal(3.0), bt.init.kaiming_normal(scale=3.0, plain=True)),
    (braintools.init.XavierUniform(), bt.init.xavier_uniform(plain=True)),
    (brainstate.nn.init.LecunNormalInit(), bt.init.lecun_normal()),
    (braintools.init.Orthogonal(2.0), bt.init.orthogonal(2.0)),
    (braintools.init.ZeroInit(), bt.init.zero()),
    (braintools.init.Constant(0.5), bt.init.constant(0.5)),
    (brainstate.init.Identity(2.0), bt.init.identity(2.0))], ids=repr)
def test_initialisers_have_the_laws_of_their_library(made, want):
    key = bt.random_key(3)
    np.testing.assert_array_equal(made(key, (3, 4)), want(key, (3, 4)))


def test_spike_functions_take_their_numbers_in_order():
    assert braintools.surrogate.ReluGrad(0.5, width=2.0) == bt.nn.Surrogate(
        "ReluGrad", alpha=0.5, width=2.0)
    assert brainstate.surrogate.Sigmoid() == bt.nn.Surrogate("Sigmoid")
    with pytest.raises(bt.UserTypeError, match=r"Sigmoid: takes \(alpha\), got 2"):
        braintools.surrogate.Sigmoid(1.0, 2.0)


def test_activations_have_the_defaults_of_jax():
    x = np.float32(1.0)
    assert float(jax.nn.gelu(x)) == pytest.approx(0.841192, abs=1e-6)
    assert float(brainstate.functional.gelu(x, approximate=False)) == pytest.approx(0.8413447)
    assert float(jax.nn.leaky_relu(-x, negative_slope=0.5)) == -0.5
    assert brainstate.nn.softmin([0.0, 0.0]).tolist() == [0.5, 0.5]
    assert float(brainstate.nn.hard_tanh(3.0)) == 1.0
    assert float(bt.nn.relu(-1.0)) == 0.0


# ---- random numbers, transformations, names that are not there ----

def test_choices():
    draw = brainstate.random.choice
    assert sorted(draw(5, 5, replace=False).tolist()) == [0, 1, 2, 3, 4]
    assert set(draw(3, (50, 2)).reshape(-1).tolist()) == {0, 1, 2}
    counts = np.bincount(np.asarray(draw(3, 2000, p=[0.0, 0.25, 0.75])), minlength=3)
    assert counts[0] == 0 and counts[1] == pytest.approx(500, abs=80)
    assert draw(np.float32([[1, 2], [3, 4]]), 4).shape == (4, 2)
    assert sorted(brainstate.random.permutation([3.0, 1.0, 2.0]).tolist()) == [1.0, 2.0, 3.0]
    with pytest.raises(bt.UserValueError, match="6 of 5 without replacement"):
        draw(5, 6, replace=False)
    with pytest.raises(bt.UserValueError, match="one entry for each of 3"):
        draw(3, 6, p=[0.5, 0.5])
    with pytest.raises(bt.NotSupportedError, match="replace=False with p"):
        draw(2, 1, replace=False, p=[0.5, 0.5])


def test_jit_is_the_function_itself(net_class):
    learner = bt.compile(net_class(), bt.D_RTRL, bt.zeros(3))

    @brainstate.transform.jit
    def step(x):
        return learner(x)

    assert step(bt.ones(3)).shape == (2,)
    assert jax.jit(step, static_argnums=0) is step


def test_a_long_term_state_keeps_its_value_when_sequences_begin():
    class Counted(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = bt.nn.GRUCell(3, 2)
            self.count = brainstate.LongTermState(bt.zeros((1,)))
            self.recent = brainstate.ShortTermState(bt.zeros((1,)), batched=False)

        def update(self, x):
            self.count.value = self.count.value + 1
            self.recent.value = self.recent.value + 1
            return self.cell(x)

    model = Counted()
    learner = bt.compile(model, bt.D_RTRL, bt.zeros((4, 3)), batch_size=4)
    for _ in range(3):
        learner.step(bt.ones((4, 3)))
    learner.reset_state()
    bt.nn.init_all_states(model, batch_size=4)
    assert float(model.count.value[0]) == 3
    assert float(model.recent.value[0]) == 0


@pytest.mark.parametrize("find, text", [
    (lambda: brainstate.transform.grad, r"learner.etrace_grad"),
    (lambda: brainstate.nn.Vmap, r"batch_size=n"),
    (lambda: brainstate.nn.Nothing, "docs/nn.md"),
    (lambda: brainstate.nothing, "there are .*environ"),
    (lambda: brainstate.surrogate.relu_grad, r"call brainstate.surrogate.ReluGrad\(...\)\(x\)"),
    (lambda: braintools.init.TruncatedNormal, "cut at two standard deviations"),
    (lambda: braintools.metric, "softmax_cross_entropy"),
    (lambda: braintools.optim, r"optimizer.attach\(model\)")])
def test_what_has_no_stand_in_says_what_to_use(find, text):
    with pytest.raises(AttributeError, match=text):
        find()
    with pytest.raises(bt.UserTypeError, match="no argument 'unit' here; there are mean, std"):
        braintools.init.Normal(unit=1)


# ---- projections ----

class Described(bt.nn.Module):
    def __init__(self, shared=True):
        super().__init__()
        nn = brainstate.nn
        self.neu = nn.LIF(4, tau=10.0)
        synapse = dict(syn=nn.Expon.desc(4, tau=5.0), out=nn.CUBA.desc(scale=2.0), post=self.neu)
        self.a = nn.AlignPostProj(comm=nn.Linear(3, 4, w_init=2.0), **synapse)
        if not shared:
            synapse["syn"] = nn.Expon.desc(4, tau=7.0)
        self.b = nn.AlignPostProj(comm=nn.Linear(4, 4, w_init=0.5), **synapse)

    def update(self, x):
        self.a(x)
        self.b(self.neu.get_spike())
        return self.neu()


class Explicit(bt.nn.Module):
    def __init__(self):
        super().__init__()
        self.neu = bt.nn.LIF(4, tau=10.0)
        self.syn = bt.nn.AlignPost(self.neu, bt.nn.Expon(4, tau=5.0), bt.nn.CUBA(2.0))
        self.a = bt.nn.AlignPostProj(bt.nn.Linear(3, 4, w_init=2.0), self.syn)
        self.b = bt.nn.AlignPostProj(bt.nn.Linear(4, 4, w_init=0.5), self.syn)

    update = Described.update


def test_described_projections_are_those_with_a_shared_synapse():
    one, two = (bt.nn.init_all_states(m) for m in (Described(), Explicit()))
    for t in range(5):
        np.testing.assert_array_equal(one(bt.ones(3) * t), two(bt.ones(3) * t))
    np.testing.assert_array_equal(one.neu.V.value, two.neu.V.value)
    states = [len(m.states(bt.HiddenState)) for m in (one, Described(shared=False))]
    assert states == [2, 3]
    assert bt.compile(Described(), "d_rtrl", bt.zeros(3))(bt.ones(3)).shape == (4,)


@pytest.mark.parametrize("changed, kind, text", [
    ({"syn": bt.nn.Expon(4, dt=1.0)}, bt.NotSupportedError, r"give syn=Expon.desc\(...\)"),
    ({"syn": 3}, bt.UserTypeError, "syn must be a description, .* got 3"),
    ({"out": None}, bt.UserTypeError, "out must be a description, .* got None"),
    ({"post": None}, bt.UserTypeError, "post must be a neuron, got None"),
    ({"delay": 1.0}, bt.NotSupportedError, "takes no 'delay' here")])
def test_other_projections_are_refused_by_name(changed, kind, text):
    nn = brainstate.nn
    given = dict(comm=nn.Linear(3, 4), syn=nn.Expon.desc(4), out=nn.CUBA.desc(),
                 post=nn.LIF(4, dt=1.0))
    with pytest.raises(kind, match=text):
        nn.AlignPostProj(**{**given, **changed})
