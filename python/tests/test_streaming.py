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


def weights_of(learner):
    return {path: np.array(w) for path, w in learner.model.state_dict().items()}


@pytest.mark.parametrize("optimizer", [
    lambda: bt.SGD(lr=0.1), lambda: bt.Adam(lr=0.01), lambda: bt.Adam(lr=0.01, clip_norm=0.1),
    lambda: bt.SGD(lr=0.1, schedule=lambda n: 0.1 / (n + 1))])
def test_a_step_that_updates_does_what_its_gradient_and_the_optimizer_do(optimizer):
    (apart, of_apart), (inside, of_inside) = started(), started()
    first, second = optimizer(), optimizer()
    before = weights_of(inside)
    for x, y in zip(XS, YS):
        want, grads, _ = apart.step_grad(x, y, loss=of_apart)
        first.update(apart.model, grads)
        got, aux = inside.step_update(x, y, loss=of_inside, optimizer=second)
        assert got == pytest.approx(want, rel=1e-4)
        np.testing.assert_array_equal(aux["x"], x)
    got, want = weights_of(inside), weights_of(apart)
    for path in want:
        np.testing.assert_allclose(got[path], want[path], rtol=1e-4, atol=1e-6)
        assert np.abs(got[path] - before[path]).max() > 1e-4
    assert second.num_updates == len(XS)


def test_a_step_that_updates_names_what_is_wrong():
    learner, handle = started()
    with pytest.raises(bt.UserTypeError, match="step_update"):
        learner.step_update(XS[0], YS[0], loss=handle, optimizer="sgd")
    with pytest.raises(bt.UserTypeError, match="step_update"):
        learner.step_update(XS[0], YS[0], loss=handle, optimizer=bt.SGD(), weight="much")
    with pytest.raises(bt.UserValueError, match="step_update: 2 arguments expected, got 1"):
        learner.step_update(XS[0], loss=handle, optimizer=bt.SGD())
    other, _ = started()
    with pytest.raises(bt.UserError, match="step_update: the loss was traced by another"):
        other.step_update(XS[0], YS[0], loss=handle, optimizer=bt.SGD())
    with pytest.raises(ZeroDivisionError):
        learner.step_update(XS[0], YS[0], loss=handle,
                            optimizer=bt.SGD(schedule=lambda n: 1 / 0))
    assert np.isfinite(learner.step_update(XS[0], YS[0], loss=handle, optimizer=bt.SGD())[0])


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
