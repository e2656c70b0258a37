# SPDX-License-Identifier: Apache-2.0
"""Models that make their states in init_state, as those of brainstate do."""
import braintrace_cpp as bt
import braintrace_cpp.numpy as jnp
import numpy as np
import pytest
from braintrace_cpp import brainstate


class Cell(brainstate.nn.Module):
    def __init__(self, n_in=3, n=4):
        super().__init__()
        self.n, self.made = n, 0
        self.W = bt.nn.Linear(n_in + n, n)

    def init_state(self, batch_size=None, **kwargs):
        shape = (self.n,) if batch_size is None else (batch_size, self.n)
        self.h = brainstate.HiddenState(jnp.zeros(shape))
        self.made += 1

    def update(self, x):
        self.h.value = jnp.tanh(self.W(jnp.concatenate([x, self.h.value], axis=-1)))
        return self.h.value


class Net(brainstate.nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = [Cell(), Cell(4)]

    def update(self, x):
        return self.cells[1](self.cells[0](x))


def test_states_are_made_once_and_found():
    net = Net()
    brainstate.nn.init_all_states(net)
    brainstate.nn.init_all_states(net, batch_size=5)
    assert [c.made for c in net.cells] == [1, 1]
    assert net.cells[1].h.value.shape == (5, 4)
    assert ("cells", 0, "h") in net.states(brainstate.HiddenState)


@pytest.mark.parametrize("batch", [None, 2])
def test_learners_compile_them_like_states_of_init(batch):
    class Declared(Cell):
        def __init__(self):
            super().__init__()
            self.h = bt.HiddenState(4)

        def init_state(self):
            pass

    x = np.ones((6, 3) if batch is None else (6, batch, 3), np.float32)
    grads = []
    for model in (Cell(), Declared()):
        learner = bt.compile(model, bt.D_RTRL, x[0], batch_size=batch, seed=1)
        grads.append(learner.etrace_grad(x, step_fn=lambda v: jnp.mean(learner(v) ** 2)))
    for name, g in grads[0].items():
        np.testing.assert_array_equal(g, grads[1][name])


def test_compile_graph_keeps_the_values_of_made_states():
    model = Cell()
    brainstate.nn.init_all_states(model, batch_size=2)
    model.h.value = jnp.ones((2, 4))
    algorithm = bt.D_RTRL(model)
    algorithm.compile_graph(jnp.zeros((2, 3)))
    assert np.all(model.h.value == 1)


def test_layers_extended_in_python_may_call_the_base():
    class Counting(bt.nn.GRUCell):
        def init_state(self, batch_size=None):
            super().init_state(batch_size)
            self.count = bt.ShortTermState(jnp.zeros(()))

        def update(self, x):
            self.count.value = self.count.value + 1
            return super().update(x)

    model = Counting(3, 4)
    learner = bt.compile(model, bt.D_RTRL, jnp.zeros(3))
    learner(jnp.ones(3)), learner(jnp.ones(3))
    assert float(model.count.value) == 2


def test_an_error_of_init_state_arrives_and_the_next_call_tries_again():
    class Failing(Cell):
        fail = True

        def init_state(self, **kwargs):
            if self.fail:
                raise KeyError("no")
            super().init_state(**kwargs)

    model = Failing()
    with pytest.raises(KeyError, match="no"):
        bt.nn.init_all_states(model)
    model.fail = False
    assert bt.nn.init_all_states(model).h.value.shape == (4,)


def test_group_states_start_with_a_value():
    group = brainstate.HiddenGroupState(jnp.ones((4, 2)))
    assert (group.num_state, group.varshape) == (2, (4,))
    assert group.get_value(1).tolist() == [1.0] * 4
    with pytest.raises(bt.UserTypeError, match="needs num_state"):
        bt.HiddenGroupState((4, 2))
    with pytest.raises(bt.UserValueError, match="last axis"):
        bt.HiddenGroupState(jnp.ones(()))
