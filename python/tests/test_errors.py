# SPDX-License-Identifier: Apache-2.0
"""Every mistake of the caller is a UserError that names what is wrong."""
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


@pytest.mark.parametrize("call, kind, text", [
    (lambda: bt.Adam(lr="x"), bt.UserTypeError, "Adam: lr must be a number, got 'x'"),
    (lambda: bt.Adam(amsgrad="x", lr=[1]), bt.UserTypeError, "Adam: lr must be a number"),
    (lambda: bt.nn.GRUCell("a", 3), bt.UserTypeError, "GRUCell: .* must be .*integer.*, got 'a'"),
    (lambda: bt.nn.GRUCell(3.5, 3), bt.UserTypeError, "GRUCell: .* must be .*integer.*, got 3.5"),
    (lambda: bt.nn.GRUCell((3, 4), 3), bt.UserTypeError, r"must be one integer, got \(3, 4\)"),
    (lambda: bt.nn.LIF(4, tau="x"), bt.UserTypeError, "not supported"),
    (lambda: bt.zeros("a"), bt.UserTypeError, r"zeros\(\): incompatible"),
    (lambda: bt.zeros((1, "a")), bt.UserTypeError, r"zeros\(\): incompatible"),
    (lambda: bt.zeros(), bt.UserTypeError, r"zeros\(\): incompatible"),
    (lambda: bt.mse(None, bt.zeros(3)), bt.UserTypeError, r"mse\(\): incompatible"),
    (lambda: bt.tanh(1.0, 2.0), bt.UserTypeError, r"tanh\(\): incompatible"),
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
])
def test_mistakes_are_user_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


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
