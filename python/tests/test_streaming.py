# SPDX-License-Identifier: Apache-2.0
"""Calls of one step: every kind of argument, and results that stay what they were."""
import gc
import sys

import braintrace_cpp as bt
import numpy as np
import pytest

RNG = np.random.default_rng(1)
XS = RNG.normal(size=(8, 3)).astype("float32")
YS = RNG.normal(size=(8, 4)).astype("float32")


def started(**options):
    learner = bt.compile(bt.nn.MiniGRU(3, 4), bt.D_RTRL, bt.zeros(3), seed=3, **options)

    def loss(x, y):
        return bt.mse(learner(x), y), {"x": x}

    return learner, learner.trace_loss(loss, bt.zeros(3), bt.zeros(4), has_aux=True)


def numbers_of(call, kind):
    learner, handle = started()
    return [call(learner, handle, kind(x), kind(y)) for x, y in zip(XS, YS)]


def strided(a):
    return np.repeat(a, 2)[::2]


def read_only(a):
    out = a.copy()
    out.flags.writeable = False
    return out


class MyValue(bt.Value):
    pass


def step_grad(learner, handle, x, y):
    loss, grads, aux = learner.step_grad(x, y, loss=handle)
    return [loss, np.array(aux["x"]), *map(np.array, grads.values())]


@pytest.mark.parametrize("kind", [
    np.copy, np.float64, strided, read_only, np.ndarray.tolist, MyValue,
    lambda a: a.astype(">f4")])
@pytest.mark.parametrize("call", [
    step_grad, lambda l, h, x, y: [np.array(l.step(x))], lambda l, h, x, y: [np.array(l(x))],
    lambda l, h, x, y: [np.array(l(bt.SingleStepData(x)))]])
def test_arguments_of_every_kind_give_the_same_numbers(call, kind):
    for got, want in zip(numbers_of(call, kind), numbers_of(call, bt.Value)):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("executor", ["plan", "interpreter"])
def test_results_that_are_kept_do_not_change(executor):
    learner, handle = started(executor=executor)
    x, y, kept = np.empty(3, "float32"), np.empty(4, "float32"), []
    for t in range(8):  # in the same two arrays, as a loop around a sensor has them
        x[:], y[:] = XS[t], YS[t]
        _, grads, aux = learner.step_grad(x, y, loss=handle)
        out = learner.step(x)
        results = [*grads.values(), aux["x"], out]
        kept.append((results, [np.array(r) for r in results]))
    for results, numbers in kept:
        for r, n in zip(results, numbers):
            np.testing.assert_array_equal(r, n)
    assert np.array_equal(kept[0][0][-2], XS[0])


def test_arguments_may_change_their_shape_and_type():
    learner, handle = started()
    learner.step_grad(XS[0], YS[0], loss=handle)
    with pytest.raises(bt.UserValueError, match=r"argument 0 must be f32\[3\], got f32\[2\]"):
        learner.step_grad(XS[0][:2].copy(), YS[0], loss=handle)
    with pytest.raises(bt.UserValueError, match="2 arguments expected, got 1"):
        learner.step_grad(XS[0], loss=handle)
    with pytest.raises(bt.UserTypeError, match="complex64"):
        learner.step_grad(XS[0].astype("complex64"), YS[0], loss=handle)
    with pytest.raises(bt.UserTypeError, match="step_grad"):
        learner.step_grad(XS[0], YS[0], loss=handle, weight="much")
    other, same = started()
    other.step_grad(XS[0], YS[0], loss=same)
    for a, b in zip(step_grad(learner, handle, XS[1], YS[1]),
                    step_grad(other, same, XS[1], YS[1])):
        np.testing.assert_array_equal(a, b)


def test_values_come_and_go_without_leaving_anything():
    learner, handle = started()

    def run():
        for x, y in zip(XS, YS):
            grads = learner.step_grad(x, y, loss=handle)[1]
            bt.Value(MyValue(learner(x)) + 1)
        del grads

    run()
    gc.collect()
    before = [sys.getrefcount(t) for t in (bt.Value, MyValue)]
    for _ in range(20):
        run()
    gc.collect()
    assert [sys.getrefcount(t) for t in (bt.Value, MyValue)] == before
