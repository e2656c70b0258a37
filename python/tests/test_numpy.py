# SPDX-License-Identifier: Apache-2.0
"""Every function against NumPy: special numbers, sizes 0 and 1, axes from both ends, random geometry."""
import itertools
import math

import braintrace_cpp as bt
import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore")

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -1, 0.5, -0.5, 2, -2, 3, 1e-300, 5e-324, -5e-324, 1e308,
                    -1e308, 1e-20, 700, -700, 710, -745, 0.1, 1.5, -1.5, 2.5, 1e16, np.pi])
WHOLE = np.array([0, 1, -1, 2, -2, 3, 7, -7, 2**31 - 1, -2**31, 2**30, 65536], np.int32)
SHAPES = [(), (0,), (1,), (5,), (0, 3), (3, 0), (2, 3), (1, 4), (2, 3, 4), (2, 1, 3, 2)]
TYPES = ["float32", "float64", "int32", "bool"]


def V(x):
    return bt.array(x, dtype=np.asarray(x).dtype.name)


def draw(rng, shape, dtype="float64"):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype == "int32":
        return rng.integers(-5, 6, shape).astype(np.int32)
    x = rng.normal(size=shape)
    odd = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], size=x.shape)
    return np.asarray(np.where(rng.random(x.shape) < 0.2, odd, x), dtype)


def sizes(rng, low, high, count):
    return [int(v) for v in rng.integers(low, high, count)]


def same(got, want, tolerance, *what):
    """Equal up to rounding: the same NaNs, infinities and signs of zero."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, what
    g, w = got.astype(float), want.astype(float)
    least = np.finfo(got.dtype).tiny if got.dtype.kind == "f" else 1
    good = (np.isnan(g) & np.isnan(w)) | (g == w) | (abs(g - w) <= tolerance * np.maximum(abs(w), least))
    if got.dtype.kind == want.dtype.kind == "f" and tolerance < 1e-4:
        good &= (g != 0) | (w != 0) | (np.signbit(g) == np.signbit(w))
    at = tuple(np.argwhere(~good)[0]) if not good.all() else ()
    assert good.all(), (*what, at, got[at], want[at])


def agree(ours, theirs, tolerance, *what):
    """The same result, or both refuse."""
    try:
        want = theirs()
    except (ValueError, IndexError):
        with pytest.raises(bt.UserError):
            ours()
        return
    got = np.asarray(ours())
    scale = 1 + np.nanmax(np.where(np.isfinite(want), abs(np.asarray(want, float)), 0), initial=0)
    np.testing.assert_allclose(got.astype(float), np.asarray(want, float), tolerance, tolerance * scale, err_msg=str(what))
    assert got.shape == np.shape(want), what


def sigmoid(x):
    e = np.exp(-abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(e.dtype)


ONE = {"abs": np.abs, "cos": np.cos, "exp": np.exp, "expm1": np.expm1, "floor": np.floor, "log": np.log,
       "log1p": np.log1p, "negative": np.negative, "sign": np.sign, "sin": np.sin, "sqrt": np.sqrt, "tanh": np.tanh,
       "square": np.square, "logical_not": np.logical_not, "relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid,
       "erf": lambda x: np.vectorize(math.erf)(x.astype(float)), "rsqrt": lambda x: 1 / np.sqrt(x),
       "softplus": lambda x: np.logaddexp(x, 0)}
TWO = ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "equal", "not_equal", "less",
       "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor"]


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name):
    f = getattr(bt, name)
    same(f(V(SPECIAL)), ONE[name](SPECIAL), 1e-13, name)
    single = SPECIAL.astype(np.float32)
    same(f(V(single)), ONE[name](single), 1e-6, name)
    whole = WHOLE if name in ("abs", "floor", "negative", "sign", "square", "logical_not", "relu") else WHOLE[:8]
    same(f(V(whole)), ONE[name](whole), 1e-6, name)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name):
    theirs = getattr(np, name)
    for x, tolerance in ((SPECIAL, 1e-13), (SPECIAL.astype(np.float32), 1e-6), (WHOLE, 1e-6)):
        if name == "power" and x is WHOLE:
            continue  # below
        a, b = (np.ascontiguousarray(v) for v in np.broadcast_arrays(x[:, None], x[None]))
        same(getattr(bt, name)(V(a), V(b)), theirs(a, b), tolerance, name)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "less"])
def test_shapes_and_types_meet_as_in_numpy(name):
    rng = np.random.default_rng(1)
    for s, t in itertools.product(SHAPES, SHAPES):
        for d, e in (("float32", "float64"), ("int32", "float32"), ("float64", "int32"), ("int32", "int32")):
            a, b = draw(rng, s, d), draw(rng, t, e)
            agree(lambda: getattr(bt, name)(V(a), V(b)), lambda: getattr(np, name)(a, b), 1e-6, name, d, s, e, t)


def test_bounds_and_choices():
    rng = np.random.default_rng(2)
    for _ in range(20):
        x, low, high, pick = (draw(rng, (4, 5), d) for d in ("float64", "float64", "float64", "bool"))
        np.testing.assert_array_equal(bt.clip(V(x), V(low), V(high)), np.clip(x, low, high))  # either zero
        same(bt.where(V(pick), V(x), V(low)), np.where(pick, x, low), 0, "where")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)  # a scalar has no axis: below
def test_functions_along_axes(shape, dtype):
    rng = np.random.default_rng(3)
    x, rank = draw(rng, shape, dtype), len(shape)
    v, tolerance = V(x), 1e-5 if dtype == "float32" else 1e-11
    ends = range(-rank - 1, rank + 1)
    for axis, keep in itertools.product([None, *ends], (False, True)):
        for name in ("sum", "prod") + (("max", "min") if 0 not in shape else ()):
            agree(lambda: getattr(bt, name)(v, axis=axis, keepdims=keep),
                  lambda: getattr(np, name)(x, axis=axis, keepdims=keep), tolerance, name, axis)
    for a in ends:
        agree(lambda: bt.mean(v, axis=a), lambda: np.mean(x, a), max(tolerance, 1e-6 if x.dtype.kind != "f" else 0), a)
        agree(lambda: bt.argmax(v, a), lambda: np.argmax(x, a), 0, "argmax", a)
        agree(lambda: bt.cumsum(v, a), lambda: np.cumsum(x, a), tolerance, "cumsum", a)
        agree(lambda: bt.cumsum(v, a, True), lambda: np.flip(np.cumsum(np.flip(x, a), a), a), tolerance, "reverse", a)
        agree(lambda: bt.flip(v, [a]), lambda: np.flip(x, a), 0, "flip", a)
        agree(lambda: bt.expand_dims(v, a), lambda: np.expand_dims(x, a), 0, "expand_dims", a)
        agree(lambda: bt.squeeze(v, a), lambda: np.squeeze(x, a), 0, "squeeze", a)
        agree(lambda: bt.stack([v, v], a), lambda: np.stack([x, x], a), 0, "stack", a)
        agree(lambda: bt.concatenate([v, v], a), lambda: np.concatenate([x, x], a), 0, "concatenate", a)
        for shift in (0, 1, -1, 7, 10**6 + 1, -10**9):
            agree(lambda: bt.roll(v, shift, a), lambda: np.roll(x, shift, a), 0, "roll", shift, a)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_functions_of_shape(shape, dtype):
    x, rank = draw(np.random.default_rng(4), shape, dtype), len(shape)
    v = V(x)
    for order in [*map(list, itertools.permutations(range(rank))), [0, 0]]:
        agree(lambda: bt.transpose(v, order), lambda: np.transpose(x, order), 0, order)
    for new in ([-1], [x.size], [1, -1], [-1, 1], [-1, 0], [2, -1], [0, -1], [-1, -1], [3, 2], []):
        agree(lambda: bt.reshape(v, new), lambda: np.reshape(x, new), 0, new)
    for new in ([5], [1], [3, 5], [2, 3], [0], [4, 2, 3], [2, 3, 4], []):
        agree(lambda: bt.broadcast_to(v, new), lambda: np.broadcast_to(x, new), 0, new)
    for low, high in ((1, 2), (0, 0), (0, 3), (-1, 0), (0, -1)) if rank else ():
        agree(lambda: bt.pad(v, [low] * rank, [high] * rank, 3), lambda: np.pad(x, [(low, high)] * rank, constant_values=3), 0)
    for new in TYPES if dtype != "float64" and dtype != "float32" else ("float32", "float64", "bool"):
        agree(lambda: bt.astype(v, new), lambda: x.astype(new), 1e-6, new)


def test_windows_with_steps():
    x = draw(np.random.default_rng(5), (7, 5))
    for key in (np.s_[::2], np.s_[::-1], np.s_[5:1:-2], np.s_[-3:], np.s_[:, 1::3], np.s_[100:], np.s_[..., -1],
                np.s_[None, 2], np.s_[3:3], np.s_[::-3, ::-1], np.s_[6:0:-7], np.s_[-100:100:3]):
        same(V(x)[key], x[key], 0, key)


def test_taking_and_adding_at_indices():
    rng = np.random.default_rng(6)
    for _ in range(100):
        shape = sizes(rng, 1, 4, rng.integers(1, 4))
        axis = int(rng.integers(-len(shape), len(shape)))
        a = axis % len(shape)
        at = rng.integers(0, shape[a], sizes(rng, 0, 3, rng.integers(0, 3))).astype(np.int32)
        x, more = rng.normal(size=shape), rng.normal(size=(*shape[:a], *at.shape, *shape[a + 1:]))
        same(bt.take(V(x), V(at), axis), np.take(x, at, axis), 0, shape, axis)
        want = np.moveaxis(x, a, 0).copy()
        np.add.at(want, at.ravel(), np.moveaxis(more.reshape(*shape[:a], at.size, *shape[a + 1:]), a, 0))
        agree(lambda: bt.scatter_add(V(x), V(at), V(more), axis), lambda: np.moveaxis(want, 0, a), 1e-12, shape, axis)


def test_products():
    rng = np.random.default_rng(7)
    for s, t in itertools.product([(3,), (2, 3), (4, 2, 3), (0, 3)], [(3,), (3, 2), (3, 0), (5, 3, 2)]):
        a, b = rng.normal(size=s), rng.normal(size=t)
        agree(lambda: bt.dot(V(a), V(b)), lambda: np.dot(a, b), 1e-12, s, t)
    for _ in range(100):
        batch, sums, left, right = (names[:n] for names, n in zip(("ab", "cd", "pq", "xy"), sizes(rng, 0, 3, 4)))
        lhs, rhs = list(batch + sums + left), list(batch + sums + right)
        rng.shuffle(lhs), rng.shuffle(rhs)
        size = {c: int(rng.choice([0, 1, 2, 3], p=[0.04, 0.32, 0.32, 0.32])) for c in batch + sums + left + right}
        x, y = (rng.normal(size=[size[c] for c in names]) for names in (lhs, rhs))
        free = "".join(c for c in lhs if c in left) + "".join(c for c in rhs if c in right)
        agree(lambda: bt.dot_general(V(x), V(y), [lhs.index(c) for c in sums], [rhs.index(c) for c in sums],
                                     [lhs.index(c) for c in batch], [rhs.index(c) for c in batch]),
              lambda: np.einsum("".join(lhs) + "," + "".join(rhs) + "->" + batch + free, x, y), 1e-12, lhs, rhs)


@pytest.mark.parametrize("equation", ["bi,io->bo", "bhd,hde->bhe", "bhd,ed->bhe", "bhd,h->bhd", "bi,i->b", "bi,i->bi",
                                      "bz,zo->bo", "b,o->bo", "bi,io->bio", "bt,to->bo", "bhd,hd->bdh", "zi,io->zo"])
def test_einsum(equation):
    size = dict(b=2, h=3, d=4, e=5, i=3, o=4, t=1, z=0)
    rng = np.random.default_rng(8)
    x, w = (rng.normal(size=[size[c] for c in names]) for names in equation.split("->")[0].split(","))
    agree(lambda: bt.einsum(equation, V(x), V(w)), lambda: np.einsum(equation, x, w), 1e-12)


def correlate(x, k, strides, pad, spread, gaps, groups):
    """Plain sums over windows of [n, *spatial, c]; pad may cut."""
    dims = x.ndim - 2
    for a in range(dims):
        axis, n = a + 1, x.shape[a + 1]
        wide = np.zeros([*x.shape[:axis], (n - 1) * spread[a] + 1, *x.shape[axis + 1:]])
        wide[(slice(None),) * axis + (slice(None, None, spread[a]),)] = x
        low, high = pad[a]
        wide = np.pad(wide, [(max(low, 0), max(high, 0)) if d == axis else (0, 0) for d in range(x.ndim)])
        x = np.take(wide, range(max(-low, 0), wide.shape[axis] - max(-high, 0)), axis)
    out = [max((x.shape[a + 1] - (k.shape[a] - 1) * gaps[a] - 1) // strides[a] + 1, 0) for a in range(dims)]
    y = np.zeros((x.shape[0], *out, k.shape[-1]))
    c, o = x.shape[-1] // groups, k.shape[-1] // groups
    for at in itertools.product(*map(range, out)):
        for tap in itertools.product(*map(range, k.shape[:dims])):
            seen = x[(slice(None), *(p * s + q * d for p, s, q, d in zip(at, strides, tap, gaps)))]
            for g in range(groups):
                y[(slice(None), *at, slice(g * o, g * o + o))] += seen[:, g * c:g * c + c] @ k[tap][:, g * o:g * o + o]
    return y


def test_convolutions_of_any_geometry():
    rng = np.random.default_rng(9)
    for _ in range(150):
        dims, groups = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
        c, o = groups * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
        x = rng.normal(size=[int(rng.integers(0, 3)), *sizes(rng, 1, 6, dims), c])
        k = rng.normal(size=[*sizes(rng, 1, 4, dims), c // groups, o])
        strides, spread, gaps = sizes(rng, 1, 4, dims), sizes(rng, 1, 3, dims), sizes(rng, 1, 3, dims)
        low, high = sizes(rng, -1, 4, dims), sizes(rng, -1, 4, dims)
        if any((n - 1) * d + 1 < max(-p, 0) + max(-q, 0) for n, d, p, q in zip(x.shape[1:], spread, low, high)):
            continue  # more is cut than there is
        want = correlate(x, k, strides, list(zip(low, high)), spread, gaps, groups)
        types = ["f64" + str(list(a.shape)).replace(" ", "") for a in (x, k, want)]
        program = bt.parse_graph(f"in %0:{types[0]} %1:{types[1]} %2:{types[2]} = conv_general {{groups={groups}, "
                                 f"input_dilation={spread}, kernel_dilation={gaps}, pad_high={high}, pad_low={low}, "
                                 f"strides={strides}}} %0 %1 out %2")
        agree(lambda: program(V(x), V(k))[0], lambda: want, 1e-11, types, strides, low, high, spread, gaps)


def test_pooling_of_any_geometry():
    rng = np.random.default_rng(10)
    for _ in range(100):
        dims = int(rng.integers(1, 4))
        x = rng.normal(size=[int(rng.integers(0, 3)), *sizes(rng, 1, 8, dims), int(rng.integers(1, 3))])
        window, strides = sizes(rng, 1, 4, dims), sizes(rng, 1, 4, dims)
        for padding in ("SAME", "VALID"):
            missing = [max((-(-n // s) - 1) * s + w - n, 0) if padding == "SAME" else 0
                       for n, s, w in zip(x.shape[1:], strides, window)]
            edges = [(0, 0), *((m // 2, m - m // 2) for m in missing), (0, 0)]
            padded = np.pad(x, edges, constant_values=np.nan)
            out = [max((n - w) // s + 1, 0) for n, w, s in zip(padded.shape[1:], window, strides)]
            largest, mean = np.zeros((2, x.shape[0], *out, x.shape[-1]))
            for at in itertools.product(*map(range, out)):
                seen = padded[(slice(None), *(slice(p * s, p * s + w) for p, s, w in zip(at, strides, window)))]
                axes = tuple(range(1, dims + 1))
                largest[(slice(None), *at)], mean[(slice(None), *at)] = np.nanmax(seen, axes), np.nanmean(seen, axes)
            agree(lambda: bt.max_pool(V(x), window, strides, padding), lambda: largest, 1e-12, x.shape, window, strides)
            agree(lambda: bt.avg_pool(V(x), window, strides, padding), lambda: mean, 1e-12, x.shape, window, strides)


def test_where_numpy_is_not_followed():
    """docs/python.md lists these."""
    for name in ("add", "multiply", "maximum", "minimum"):
        with pytest.raises(bt.UserError, match="needs numbers, got bool"):
            getattr(bt, name)(V(np.array([True])), V(np.array([True])))
    assert bt.power(V(WHOLE[:3]), V(WHOLE[:3])).dtype == np.float32
    assert bt.divide(V(WHOLE[1:3]), V(WHOLE[1:3])).dtype == np.float32
    assert bt.mean(V(WHOLE)).dtype == np.float32
    assert float(bt.max(bt.zeros([0]))) == -np.inf and float(bt.min(bt.zeros([0]))) == np.inf
    with pytest.raises(bt.UserError, match="index -1 is outside"):
        bt.take(V(SPECIAL), V(np.array([-1], np.int32)))
    for name in ("sum", "argmax", "cumsum"):
        with pytest.raises(bt.UserError, match="axis -1 is out of range for rank 0"):
            getattr(bt, name)(bt.zeros([]), -1)
