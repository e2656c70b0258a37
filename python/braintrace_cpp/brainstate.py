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
from ._learner import ETraceAlgorithm


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
    return _core.scan(lambda c, x: (c, f(*x)), (), xs)[1]


random = _Random()
transform = SimpleNamespace(
    scan=_core.scan, while_loop=_core.while_loop, cond=_core.cond, for_loop=_for_loop)
