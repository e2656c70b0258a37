# SPDX-License-Identifier: Apache-2.0
"""Which parts a model written in Python has: cycles, names, parts that are replaced."""
import braintrace_cpp as bt
import numpy as np
import pytest

XS, YS = np.ones((5, 3), "float32"), np.zeros((5, 2), "float32")


class Child(bt.nn.Module):
    def __init__(self, parent):
        super().__init__()
        self.rnn, self.parent, self.me = bt.nn.GRUCell(3, 4), parent, self

    def update(self, x):
        return self.rnn(x)


class Parent(bt.nn.Module):
    def __init__(self):
        super().__init__()
        self.child = Child(self)
        self.ring = [self.child]
        self.ring.append(self.ring)

    def update(self, x):
        return self.child(x)


class Summed(bt.nn.Module):
    """The sum of two layers and a leak; `parts` holds the layers."""

    def __init__(self, parts, pick):
        super().__init__()
        self.parts, self.pick, self.h = parts, pick, bt.nn.HiddenState(3)

    def update(self, x):
        first, second = self.pick(self.parts)
        self.h.value = first(x) + second(x) + self.h.value * 0.5
        return self.h.value


def linear():
    return bt.nn.Linear(3, 3)


# ---- cycles ----


def test_an_attribute_that_leads_back_is_no_part():
    model = bt.nn.init_all_states(Parent())
    assert {path[0] for path in model.states()} == {"child"}
    assert repr(model).startswith("Parent(child=Child")
    learner = bt.compile(model, bt.D_RTRL, bt.zeros(3))
    grads = learner.etrace_grad(XS, step_fn=lambda x: bt.sum(learner(x)))
    assert all(name.startswith("child/rnn/") for name in grads)
    assert model.eval().child.training is False


def test_modules_that_all_know_each_other_take_no_time():
    class Node(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.others = bt.nn.Linear(2, 2), []

    nodes = [Node() for _ in range(60)]
    for node in nodes:
        node.others = nodes
    assert len(nodes[0].states()) == len(nodes)


def test_parts_too_deep_for_the_library_are_refused():
    model = bottom = bt.nn.Module()
    for _ in range(3000):
        bottom.next = bt.nn.Module()
        bottom = bottom.next
    bottom.w = linear()
    with pytest.raises(bt.UserValueError, match="deeper than 500 levels, at next/next"):
        model.states()


def test_data_that_holds_itself_is_refused():
    learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
    data = {}
    data["again"] = data
    with pytest.raises(RecursionError):
        learner(data)


# ---- names ----


@pytest.mark.parametrize("parts, pick, name", [
    (lambda: {1: linear(), "1": linear()}, lambda p: (p[1], p["1"]), "parts/1/weight/"),
    (lambda: {"a/b": linear(), "a": {"b": linear()}}, lambda p: (p["a/b"], p["a"]["b"]),
     "parts/a/b/weight/")])
def test_two_states_of_one_name_are_refused(parts, pick, name):
    model = Summed(parts(), pick)
    for use in (bt.nn.init_all_states, lambda m: bt.compile(m, bt.D_RTRL, bt.zeros(3)),
                lambda m: m.states()):
        with pytest.raises(bt.UserValueError, match=f"two states are called '{name}"):
            use(model)


# ---- replaced parts ----


def compiled(net):
    learner = bt.compile(net, bt.D_RTRL, bt.zeros(3), seed=1)
    return learner, lambda x, y: bt.mse(learner(x), y)


def test_a_replaced_part_is_refused_by_every_call(net, tmp_path):
    learner, loss = compiled(net)
    handle, prepared = (learner.trace_loss(loss, XS[0], YS[0]),
                        learner.prepare(XS, YS, step_fn=loss))
    learner.save(tmp_path / "before")
    net.rnn = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))
    calls = [lambda: learner(XS[0]), lambda: learner.step(XS[0]),
             lambda: learner.step_grad(XS[0], YS[0], loss=handle),
             lambda: learner.etrace_grad(XS, YS, step_fn=loss), lambda: prepared.grad(XS, YS),
             lambda: learner.etrace_evolve(XS), lambda: learner.save(tmp_path / "after"),
             lambda: learner.load(tmp_path / "before"),
             lambda: bt.Adam().attach(learner)]
    for call in calls:
        with pytest.raises(bt.UserRuntimeError, match="another 'rnn' than when it was compiled"):
            call()


def test_a_part_put_back_or_named_twice_goes_on(net):
    learner, _ = compiled(net)
    part, net.rnn = net.rnn, None
    with pytest.raises(bt.UserRuntimeError, match="'rnn'"):
        learner(XS[0])
    net.rnn = part
    learner(XS[0])
    net.same = net.rnn  # a second name of it
    learner(XS[0])


def test_a_replaced_entry_of_a_list_is_refused():
    model = Summed([linear(), linear()], lambda p: p)
    learner = bt.compile(model, bt.D_RTRL, bt.zeros(3))
    model.parts[1] = linear()
    with pytest.raises(bt.UserRuntimeError, match="'parts/1'"):
        learner(XS[0])


def test_a_run_refuses_a_replaced_part(net_class):
    run = bt.TrainingRun(bt.tasks.integrator(steps=5), net_class(1, 4, 1), "d_rtrl", bt.Adam(),
                         batch=2)
    run.model.out = bt.nn.Linear(4, 1)
    for call in (run.update, lambda: run.train(1), run.checkpoint):
        with pytest.raises(bt.UserRuntimeError, match="another 'out'"):
            call()


def test_an_attached_optimiser_keeps_the_part_it_moves(net):
    optimizer = bt.SGD(lr=0.5)
    optimizer.attach(net)
    grads = {name: bt.ones_like(value) for name, value in net.state_dict().items() if "out" in name}
    net.out = None
    for _ in range(3):
        optimizer.update(grads)


# ---- values ----


def test_a_state_dict_is_whole_unless_a_part_is_asked_for(net):
    values = net.state_dict()
    part = {k: v for k, v in values.items() if k.startswith("out")}
    with pytest.raises(bt.UserValueError, match="no value for 'rnn/Wh/weight/bias', .* more"):
        net.load_state_dict(part)
    with pytest.raises(bt.UserValueError, match="no value for .*, and the model has no state 'o'"):
        net.load_state_dict({"o": bt.ones(2)})
    net.load_state_dict({k: v * 0 for k, v in part.items()}, strict=False)
    assert not np.any(net.out.weight.value["weight"])
    assert np.array_equal(net.state_dict()["rnn/Wh/weight/weight"], values["rnn/Wh/weight/weight"])
    with pytest.raises(bt.UserValueError, match="no state 'o'"):
        net.load_state_dict({"o": bt.ones(2)}, strict=False)


def test_the_default_type_reaches_models_and_draws(net_class):
    bt.set_default_dtype("f64")
    try:
        learner = bt.compile(net_class(), bt.D_RTRL, bt.zeros(3))
        assert {v.dtype for v in learner.model.state_dict().values()} == {np.dtype("float64")}
        assert learner(XS[0]).dtype == "float64"
        assert bt.random_normal(bt.random_key(0), 2).dtype == "float64"
        assert bt.nn.init_all_states(bt.nn.GRUCell(2, 3)).h.value.dtype == "float64"
        assert bt.nn.init_all_states(bt.nn.GRUCell(2, 3), dtype="f32").h.value.dtype == "float32"
    finally:
        bt.set_default_dtype("f32")
