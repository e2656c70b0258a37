# SPDX-License-Identifier: Apache-2.0
"""Values against NumPy: conversion, indexing, operators, memory shared both ways."""
import pickle

import braintrace_cpp as bt
import numpy as np
import pytest

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_numpy_views_share_memory_and_are_read_only():
    v = bt.Value(X)
    a, b = np.asarray(v), v.numpy()
    assert np.shares_memory(a, b)
    assert not a.flags.writeable
    np.testing.assert_array_equal(a, X)


def test_a_writable_array_is_copied_and_a_read_only_one_is_not():
    mine = X.copy()
    v = bt.Value(mine)
    mine[:] = 0
    assert v.tolist() == X.tolist()
    frozen = X.copy()
    frozen.setflags(write=False)
    assert np.shares_memory(bt.Value(frozen).numpy(), frozen)


def test_dlpack_goes_both_ways_without_copies():
    mine = X.copy()
    v = bt.from_dlpack(mine)
    assert np.shares_memory(np.from_dlpack(v), mine)
    turned = bt.from_dlpack(X.T.copy(order="F"))
    np.testing.assert_array_equal(turned, X.T)
    assert v.__dlpack_device__() == (1, 0)


def test_the_buffer_protocol_gives_the_memory():
    view = memoryview(bt.Value(X))
    assert view.shape == X.shape and view.readonly and view.format == "f"
    assert view.tolist() == X.tolist()


@pytest.mark.parametrize("given, name", [
    (1.5, "float32"), (np.float64(1), "float32"), ([1, 2], "int32"), ([True], "bool"),
    (np.int64([3]), "int32"), (np.float16([1]), "float32"), (np.uint8([1]), "int32")])
def test_elements_take_the_default_types(given, name):
    assert bt.Value(given).dtype == np.dtype(name)


def test_the_default_float_can_be_double():
    bt.set_default_dtype("f64")
    try:
        assert bt.Value([0.1]).item() == 0.1
        assert bt.zeros(2).dtype == np.float64
    finally:
        bt.set_default_dtype("f32")
    assert bt.Value([0.1], "f64").item() == 0.1


def test_integers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="32 bits"):
        bt.Value([2**40])
    with pytest.raises(TypeError, match="complex"):
        bt.Value(np.complex64(1))


@pytest.mark.parametrize("key", [
    0, -1, (1, 2, 3), slice(1, None), (slice(None), 1), (Ellipsis, 2), (0, Ellipsis, slice(1, 3)),
    (None, 1), (slice(None), None), (slice(None, None, -1),), (Ellipsis, slice(3, 0, -2)),
    (slice(None), [2, 0]), (1, np.array([1, 1])), ([1, 0],), (slice(0, 0),), Ellipsis])
def test_indexing_agrees_with_numpy(key):
    np.testing.assert_array_equal(bt.Value(X)[key], X[key])


def test_bad_indices_are_refused():
    v = bt.Value(X)
    with pytest.raises(IndexError, match="out of range"):
        v[2]
    with pytest.raises(ValueError, match="4 indices"):
        v[0, 0, 0, 0]


@pytest.mark.parametrize("f", [
    lambda a, b: a + b, lambda a, b: a - 2 * b, lambda a, b: a / (b + 1), lambda a, b: 3 - a,
    lambda a, b: a ** 2, lambda a, b: 2 / (a + 1), lambda a, b: -a, lambda a, b: abs(-a),
    lambda a, b: a < b, lambda a, b: a >= 5, lambda a, b: a == b, lambda a, b: a != b,
    lambda a, b: a // 2, lambda a, b: a % 3, lambda a, b: a.sum(), lambda a, b: a.mean(axis=1),
    lambda a, b: a.max(axis=(0, 2)), lambda a, b: a.T, lambda a, b: a.reshape(6, -1),
    lambda a, b: a.transpose(2, 0, 1), lambda a, b: a[0] @ b[0].T, lambda a, b: a.min(axis=0),
    lambda a, b: a.cumsum(axis=1), lambda a, b: a.clip(2, 5), lambda a, b: a.argmax(axis=2),
    lambda a, b: (a > 3) & (b < 9), lambda a, b: ~(a > 3), lambda a, b: a.sum(axis=1, keepdims=True)])
def test_operators_agree_with_numpy(f):
    b = X[::-1].copy()
    np.testing.assert_allclose(f(bt.Value(X), bt.Value(b)), f(X, b), rtol=1e-6)


def test_numpy_on_the_left_gives_a_value():
    assert isinstance(X + bt.Value(X), bt.Value)
    assert isinstance(np.float32(2) * bt.Value(X), bt.Value)


def test_a_value_can_be_pickled():
    v = pickle.loads(pickle.dumps(bt.Value([1.5], "f64")))
    assert v.dtype == np.float64 and v.tolist() == [1.5]


def test_scan_and_cond_run_python_functions():
    carry, ys = bt.scan(lambda c, x: ({"s": c["s"] + x}, c["s"] * 2), {"s": bt.zeros(())},
                        bt.Value([1.0, 2.0, 3.0]))
    assert float(carry["s"]) == 6 and ys.tolist() == [0, 2, 6]
    assert float(bt.cond(bt.Value(False), lambda x: x, lambda x: -x, bt.ones(()))) == -1
    assert float(bt.while_loop(lambda c: c < 5.0, lambda c: c + 2.0, bt.zeros(()))) == 6


def test_functions_of_numpy_take_values():
    v = bt.array([[-1.0, 4.0]])
    assert isinstance(np.tanh(v), bt.Value) and np.abs(v).tolist() == [[1.0, 4.0]]
    np.testing.assert_allclose(np.arctan(v), np.arctan(v.numpy()))
    assert np.add.reduce(v, axis=1).tolist() == [3.0]
    both = np.ones((1, 2), "f4") + v, v + np.ones((1, 2), "f4"), np.float64(1) + v
    for total in both:
        assert isinstance(total, bt.Value) and total.dtype == np.float32
        assert total.tolist() == [[0.0, 5.0]]

    class Net(bt.nn.Module):
        def update(self, x):
            return np.tanh(np.ones(2, "f4") * x)

    assert "tanh" in str(bt.trace_step(Net(), bt.zeros(2)))


def test_squeezing_one_axis_or_all():
    v = bt.ones((1, 2, 1))
    assert bt.squeeze(v).shape == v.squeeze().shape == (2,)
    assert bt.squeeze(v, 0).shape == v.squeeze(-3).shape == (2, 1)
