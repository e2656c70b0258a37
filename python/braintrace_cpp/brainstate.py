# SPDX-License-Identifier: Apache-2.0
"""Stand-in for the parts of brainstate that braintrace models use: states, modules, random
numbers, transformations that a learner makes unnecessary to write.

>>> from braintrace_cpp import brainstate
>>> brainstate.random.seed(0)
>>> brainstate.random.randn(2, 3).shape
(2, 3)
"""
from types import SimpleNamespace

from . import _core, nn  # noqa: F401
from ._core import (
    HiddenGroupState,
    HiddenState,
    HiddenTreeState,
    ParamState,
    ShortTermState,
    State,
)
from ._errors import UserValueError
from ._learner import ETraceAlgorithm
from .jax import _tree_map


class _Random:
    """Random numbers from one stream per process, as brainstate.random."""

    def __init__(self):
        self.seed(0)

    def seed(self, seed):
        """Starts the stream anew."""
        self._key, self._count = _core.random_key(seed), 0

    def split_key(self):
        """A fresh key."""
        self._count += 1
        return _core.random_fold_in(self._key, self._count)

    def randn(self, *shape):
        """Standard normal numbers."""
        return _core.random_normal(self.split_key(), shape)

    def rand(self, *shape):
        """Uniform numbers in [0, 1)."""
        return _core.random_uniform(self.split_key(), shape)

    def normal(self, loc=0.0, scale=1.0, size=()):
        """Normal numbers."""
        return _core.random_normal(self.split_key(), size) * scale + loc

    def uniform(self, low=0.0, high=1.0, size=()):
        """Uniform numbers in [low, high)."""
        return _core.random_uniform(self.split_key(), size) * (high - low) + low

    def randint(self, low, high, size=()):
        """Integers in [low, high)."""
        u = _core.random_uniform(self.split_key(), size) * (high - low)
        return _core.astype(_core.floor(u), "i32") + low

    def bernoulli(self, p=0.5, size=()):
        """True with probability p."""
        return _core.random_bernoulli(self.split_key(), p, size)


def _for_loop(f, *xs):
    """f at every step, outputs stacked; states of a learner move on."""
    if isinstance(f, ETraceAlgorithm):
        return f.etrace_evolve(*xs, return_outputs=True)
    if _core._is_tracing():
        return _core.scan(lambda c, x: (c, f(*x)), (), xs)[1]
    return _stacked([f(*x) for x in _steps(xs)])


def _steps(xs):
    """The arguments of each step, whatever trees of arrays they are."""
    def leaves(x):
        items = x.values() if isinstance(x, dict) else x
        return [leaf for i in items for leaf in leaves(i)] if isinstance(
            x, (dict, list, tuple)) else [x]

    lengths = sorted({len(leaf) for leaf in leaves(xs)})
    if len(lengths) != 1 or lengths[0] == 0:
        raise UserValueError(f"for_loop: sequences need one length >= 1, got {lengths}")
    for t in range(lengths[0]):
        yield _tree_map(lambda leaf: leaf[t], xs)


def _stacked(outputs):
    """Outputs of all steps, leaf by leaf on a leading axis; None where a step returns none."""
    if outputs[0] is None:
        return None
    return _tree_map(lambda *leaves: _core.stack(leaves, 0), *outputs)


random = _Random()
transform = SimpleNamespace(
    scan=_core.scan, while_loop=_core.while_loop, cond=_core.cond, for_loop=_for_loop)
