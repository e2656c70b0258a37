# SPDX-License-Identifier: Apache-2.0
"""The functions of jax.numpy that models are written with, under the same names.

>>> import braintrace_cpp.numpy as jnp
>>> jnp.mean((jnp.arange(3.0) - 1.0) ** 2).shape
()
"""
import math

from ._core import (
    Value,
    add,
    broadcast_to,
    clip,
    cos,
    cumsum,
    divide,
    dot,
    equal,
    exp,
    expand_dims,
    expm1,
    flip,
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
    roll,
    sign,
    sin,
    sqrt,
    square,
    squeeze,
    stack,
    subtract,
    sum,
    take,
    tanh,
    transpose,
    where,
    zeros,
    zeros_like,
)
from ._core import abs as abs
from ._core import argmax as _argmax
from ._core import concatenate as _concatenate

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


def matmul(a, b):
    """A plain product; the trainable one is braintrace_cpp.matmul.

    >>> matmul(ones((2, 3)), ones((3, 4))).shape
    (2, 4)
    """
    return dot(a, b)


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
