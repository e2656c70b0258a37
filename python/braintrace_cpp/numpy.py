# SPDX-License-Identifier: Apache-2.0
"""The functions of jax.numpy that models are written with, under the same names.

>>> import braintrace_cpp.numpy as jnp
>>> jnp.mean((jnp.arange(3.0) - 1.0) ** 2).shape
()
"""
import itertools
import math

from ._core import (
    Value,
    add,
    broadcast_to,
    clip,
    cos,
    divide,
    dot,
    stacked_dot as matmul,  # plain; the trainable one is braintrace_cpp.matmul
    equal,
    exp,
    expand_dims,
    expm1,
    floor,
    full,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    max,
    maximum,
    mean,
    min,
    minimum,
    multiply,
    negative,
    not_equal,
    ones,
    ones_like,
    power,
    prod,
    reshape,
    sign,
    sin,
    sqrt,
    square,
    squeeze,
    stack,
    subtract,
    sum,
    tanh,
    transpose,
    where,
    zeros,
    zeros_like,
)
from ._core import abs as abs
from ._core import argmax as _argmax
from ._core import concatenate as _concatenate
from ._core import cumsum as _cumsum
from ._core import flip as _flip
from ._core import roll as _roll
from ._core import take as _take

ndarray = Value
pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
float32, float64, int32, bool_ = "float32", "float64", "int32", "bool"
absolute = abs


def array(x, dtype=None):
    """An array of the given numbers.

    >>> array([1, 2]).tolist()
    [1, 2]
    """
    return Value(x, dtype)


asarray = array


def arange(start, stop=None, step=1, dtype=None):
    """Numbers from start to stop.

    >>> arange(3).tolist()
    [0, 1, 2]
    """
    import numpy

    return Value(numpy.arange(*((0, start) if stop is None else (start, stop)), step), dtype)


def linspace(start, stop, num=50):
    """Evenly spaced numbers.

    >>> linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    import numpy

    return Value(numpy.linspace(start, stop, num))


def eye(n, dtype=None):
    """The unit matrix.

    >>> eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    import numpy

    return Value(numpy.eye(n), dtype)


def concatenate(arrays, axis=0):
    """Joins along an axis; the first one unless told otherwise, as in NumPy.

    >>> concatenate([ones((1, 2)), ones((1, 2))]).shape
    (2, 2)
    """
    return _concatenate(arrays, axis)


def argmax(x, axis=None):
    """Where the largest entry stands.

    >>> int(argmax([1.0, 3.0, 2.0]))
    1
    """
    if axis is None:
        return _argmax(Value(x).reshape(-1), 0)
    return _argmax(x, axis)


def cumsum(x, axis=None):
    """Running sums; of all entries in their order without an axis.

    >>> cumsum([[1, 2], [3, 4]]).tolist()
    [1, 3, 6, 10]
    """
    return _cumsum(ravel(x), 0) if axis is None else _cumsum(x, axis)


def flip(x, axis=None):
    """Entries backwards, along every axis unless one is given.

    >>> flip([[1, 2], [3, 4]]).tolist()
    [[4, 3], [2, 1]]
    """
    x = Value(x)
    return _flip(x, tuple(range(x.ndim)) if axis is None else axis)


def roll(x, shift, axis=None):
    """Entries moved on; all of them in their order without an axis.

    >>> roll([[1, 2], [3, 4]], 1).tolist()
    [[4, 1], [2, 3]]
    """
    if axis is None:
        return reshape(_roll(ravel(x), shift, 0), Value(x).shape)
    return _roll(x, shift, axis)


def take(x, indices, axis=None):
    """Entries by number; counted through all axes without an axis.

    >>> take([[1, 2], [3, 4]], [0, 3]).tolist()
    [1, 4]
    """
    return _take(ravel(x), indices, 0) if axis is None else _take(x, indices, axis)


def ravel(x):
    """All entries on one axis.

    >>> ravel([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    return Value(x).reshape(-1)


def swapaxes(x, axis1, axis2):
    """Two axes exchanged.

    >>> swapaxes(ones((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    x = Value(x)
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return transpose(x, order)


def vstack(arrays):
    """Joins rows; vectors are rows.

    >>> vstack([ones(3), ones((2, 3))]).shape
    (3, 3)
    """
    rows = (Value(a) for a in arrays)
    return concatenate([a.reshape(1, -1) if a.ndim < 2 else a for a in rows])


def hstack(arrays):
    """Joins along the second axis, vectors along their only one.

    >>> hstack([ones((2, 1)), ones((2, 3))]).shape
    (2, 4)
    """
    arrays = [Value(a) for a in arrays]
    return concatenate(arrays, axis=0 if arrays[0].ndim < 2 else 1)


def split(x, indices_or_sections, axis=0):
    """Equal parts, or parts that end at the given places.

    >>> [part.shape for part in split(ones((2, 6)), 3, axis=1)]
    [(2, 2), (2, 2), (2, 2)]
    """
    import numpy

    x = Value(x)
    before = (slice(None),) * (axis % x.ndim)
    places = numpy.split(numpy.arange(x.shape[axis]), indices_or_sections)
    ends = [0, *itertools.accumulate(len(p) for p in places)]
    return [x[(*before, slice(a, b))] for a, b in zip(ends, ends[1:])]


def var(x, axis=None, keepdims=False):
    """The population variance.

    >>> float(var([1.0, 3.0]))
    1.0
    """
    return mean(square(x - mean(x, axis, True)), axis, keepdims)


def std(x, axis=None, keepdims=False):
    """The population standard deviation.

    >>> float(std([1.0, 3.0]))
    1.0
    """
    return sqrt(var(x, axis, keepdims))
