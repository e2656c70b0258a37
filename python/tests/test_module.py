# SPDX-License-Identifier: Apache-2.0
"""Modules written in Python, and layers of the library seen from Python."""
import braintrace_cpp as bt
import numpy as np
import pytest


def test_attributes_become_paths(net):
    paths = ["/".join(map(str, p)) for p in net.states()]
    assert paths == ["out/weight", "rnn/Wh/weight", "rnn/Wr/weight", "rnn/Wz/weight", "rnn/h"]
    assert net.rnn.Wz.weight.value["weight"].shape == (7, 4)
    assert isinstance(net.rnn.Wz, bt.nn.Linear)


def test_lists_dicts_and_later_appends_are_found():
    class Deep(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = []
            for _ in range(2):
                self.layers.append(bt.nn.Linear(3, 3))
            self.heads = {"a": bt.nn.Linear(3, 1)}

        def update(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.heads["a"](x)

    net = bt.nn.init_all_states(Deep())
    assert [p[:2] for p in net.states()] == [("heads", "a"), ("layers", 0), ("layers", 1)]
    assert net(bt.ones(3)).shape == (1,)


def test_states_can_be_declared_in_python():
    class Leaky(bt.nn.Module):
        def __init__(self, n):
            super().__init__()
            self.w = bt.ParamState(np.eye(n, dtype="float32") * 0.5)
            self.h = bt.HiddenState(n)

        def update(self, x):
            self.h.value = bt.tanh(bt.matmul(self.h.value, self.w.value) + x)
            return self.h.value

    net = bt.nn.init_all_states(Leaky(3), batch_size=2)
    assert net.h.value.shape == (2, 3)
    first = net(bt.ones((2, 3)))
    np.testing.assert_allclose(first, np.tanh(1), rtol=1e-6)
    np.testing.assert_allclose(net(bt.zeros((2, 3))), np.tanh(np.tanh(1) / 2), rtol=1e-6)
    graph = bt.compile_etrace_graph(net, bt.zeros((2, 3)), batched=True)
    assert [r.weight_path for r in graph.hidden_param_op_relations] == [("w",)]


def test_eager_and_traced_steps_agree(net):
    step = bt.trace_step(net, bt.zeros(3))
    x = np.float32([0.1, -0.2, 0.3])
    leaves = []
    for line in step.describe_states().splitlines():
        assert "->" in line
    del leaves
    assert step.num_outputs == 1 and "tanh" in str(step.program)
    assert net(x).shape == (2,)


def test_python_errors_inside_update_pass_unchanged():
    class Broken(bt.nn.Module):
        def update(self, x):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        bt.trace_step(Broken(), bt.zeros(2))


def test_a_layer_extended_in_python_runs_the_python_step():
    class Doubled(bt.nn.Linear):
        def update(self, x):
            return super().update(x) * 2

    layer = bt.nn.init_all_states(Doubled(2, 3, w_init=bt.nn.init.constant(1.0)))
    assert layer(bt.ones(2)).tolist() == [4, 4, 4]
    program = bt.trace_step(layer, bt.zeros(2)).program
    assert "mul" in str(program)


def test_state_dict_goes_back_and_refuses_other_shapes(net):
    saved = net.state_dict()
    bt.nn.init_all_states(net, seed=2)
    assert not np.allclose(net.state_dict()["out/weight/weight"], saved["out/weight/weight"])
    net.load_state_dict(saved)
    np.testing.assert_array_equal(net.state_dict()["out/weight/weight"],
                                  saved["out/weight/weight"])
    with pytest.raises(bt.UserError):
        net.load_state_dict({"out/weight/weight": np.zeros((1, 1), "float32")})


def test_options_are_keywords_and_wrong_ones_are_named():
    lif = bt.nn.LIF(4, tau=20.0, V_th=[1.0, 1.0, 2.0, 2.0], spk_fun=bt.nn.Surrogate("Sigmoid"))
    assert bt.nn.init_all_states(lif)(bt.ones(4)).shape == (4,)
    with pytest.raises(TypeError, match="no argument 'tao'"):
        bt.nn.LIF(4, tao=20.0)
    with pytest.raises(TypeError, match="missing its argument 'out_size'"):
        bt.nn.Linear(3)
    with pytest.raises(ValueError, match="Surrogate"):
        bt.nn.Surrogate("Nothing")


def test_linear_takes_sizes_of_several_axes():
    layer = bt.nn.init_all_states(bt.nn.Linear((5, 3), (5, 4)))
    assert layer.weight.value["weight"].shape == (3, 4)
    assert layer(bt.ones((2, 5, 3))).shape == (2, 5, 4)
    with pytest.raises(ValueError, match=r"equal up to their last entry, got \[5,3\] and \[4\]"):
        bt.nn.Linear((5, 3), 4)


@pytest.mark.parametrize("make", [bt.nn.BatchNorm0d, bt.nn.LayerNorm,
                                  lambda n, **o: bt.nn.GroupNorm(n, num_groups=1, **o)])
def test_norms_take_the_fast_variance(make):
    x = bt.Value(np.arange(12).reshape(3, 4) * 0.1 + 1e4)  # digits the mean has in common are lost
    plain, fast = (bt.nn.init_all_states(make(4, use_fast_variance=f)) for f in (False, True))
    assert not np.array_equal(plain(x), fast(x))


def test_initialisers_are_numbers_arrays_objects_or_functions():
    for init in (0.5, np.full((2, 3), 0.5), bt.nn.init.constant(0.5),
                 lambda key, shape, dtype: np.full(shape, 0.5)):
        layer = bt.nn.init_all_states(bt.nn.Linear(2, 3, w_init=init, b_init=None))
        assert list(layer.weight.value) == ["weight"]
        np.testing.assert_array_equal(layer.weight.value["weight"], np.full((2, 3), 0.5))


def test_every_layer_has_a_signature():
    assert bt.nn.LIF.__doc__.startswith("LIF(in_size, R=1")
    assert len([c for c in vars(bt.nn).values() if isinstance(c, type)]) > 90


def test_projections_feed_neurons():
    class EI(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.neu = bt.nn.LIF(4, tau=10.0)
            self.comm = bt.nn.Linear(4, 4, w_init=2.0)
            self.syn = bt.nn.AlignPost(self.neu, bt.nn.Expon(4, tau=5.0), bt.nn.CUBA())
            self.proj = bt.nn.AlignPostProj(self.comm, self.syn)

        def update(self, x):
            self.proj(x)
            return self.neu()

    net = bt.nn.init_all_states(EI())
    spikes = sum(float(net(bt.ones(4)).sum()) for _ in range(10))
    assert spikes > 0
    graph = bt.compile_etrace_graph(net, bt.zeros(4))
    assert graph.hidden_param_op_relations[0].weight_path == ("comm", "weight")


def test_training_mode_reaches_layers_and_python_modules(net):
    net.drop = bt.nn.Dropout(0.5)
    net.eval()
    assert not net.training and not net.drop.training
    net.train()
    assert net.training and net.drop.training


@pytest.mark.parametrize("kind, base", [
    (lambda: bt.Value([1.0]).reshape(7), ValueError),
    (lambda: bt.nn.Embedding(3, 2, freeze=True), NotImplementedError),
    (lambda: bt.nn.GRUCell(2, 3)(bt.ones(2)), RuntimeError)])
def test_errors_are_user_errors_and_python_kinds(kind, base):
    with pytest.raises(base) as caught:
        kind()
    assert isinstance(caught.value, bt.UserError)


@pytest.mark.parametrize("call, text", [
    (lambda: bt.nn.GRUCell(3), "missing its argument 'out_size'"),
    (lambda: bt.Adam(learning_rate=0.1), "no argument 'learning_rate'; there are lr"),
    (lambda: bt.tasks.copying(dealy=3), "no argument 'dealy'; there are symbols"),
    (lambda: bt.compile(bt.nn.GRUCell, "d_rtrl", bt.zeros(3)), "the class GRUCell; make one"),
    (lambda: bt.compile(3, "d_rtrl", bt.zeros(3)), "a model must be a braintrace_cpp.nn.Module, got 3"),
    (lambda: bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros(3), speed="high"), "speed")])
def test_wrong_arguments_are_named_in_user_errors(call, text):
    with pytest.raises(bt.UserTypeError, match=text):
        call()


def test_a_model_shows_its_parts_as_often_as_asked(net):
    assert {repr(net) for _ in range(50)} == {"Net(out=Linear, rnn=GRUCell)"}
