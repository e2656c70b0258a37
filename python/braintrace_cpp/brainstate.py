# SPDX-License-Identifier: Apache-2.0
"""Stand-in for the parts of brainstate that braintrace models use: states, modules, random
numbers, transformations that a learner makes unnecessary to write.

>>> from braintrace_cpp import brainstate
>>> brainstate.random.seed(0)
>>> brainstate.random.randn(2, 3).shape
(2, 3)
"""
import math as _math

import numpy as _numpy

from . import _core, _stand_ins
from . import nn as _nn
from ._core import (
    HiddenGroupState,
    HiddenState,
    HiddenTreeState,
    LongTermState,
    ParamState,
    ShortTermState,
    State,
)
from ._descriptions import NAMES as _PROJECTIONS
from ._environ import environ
from ._errors import NotSupportedError, UserValueError
from ._learner import ETraceAlgorithm
from ._stand_ins import ACTIVATIONS as _ACTIVATIONS
from ._stand_ins import Place as _Place
from .jax import _jit, _tree_map


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


    def permutation(self, x):
        """The numbers below x, or the entries of x along its first axis, in any order."""
        count = x if isinstance(x, int) else len(x)
        if _core._is_tracing():
            raise NotSupportedError("random.permutation: draws before a model runs, not in it")
        order = _numpy.argsort(_numpy.asarray(self.rand(count)), kind="stable")
        order = _core.Value(order.astype("int32"))
        return order if isinstance(x, int) else _core.take(x, order)

    def choice(self, a, size=(), replace=True, p=None):
        """Numbers below a, or entries of a along its first axis; p: how likely each is."""
        size = (size,) if isinstance(size, int) else tuple(size)
        count = a if isinstance(a, int) else len(a)
        if replace and p is None:
            drawn = self.randint(0, count, size)
        elif replace:
            chance = _core.Value(p)
            if chance.shape != (count,):
                raise UserValueError(f"random.choice: p must have one entry for each of {count}, "
                                     f"got shape {chance.shape}")
            ends = _core.cumsum(chance / _core.sum(chance), 0)
            below = _core.expand_dims(self.rand(*size), -1) >= ends[:-1]
            drawn = _core.sum(_core.astype(below, "i32"), -1)
        elif p is None:
            wanted = _math.prod(size)
            if wanted > count:
                raise UserValueError(f"random.choice: {wanted} of {count} without replacement")
            drawn = self.permutation(count)[:wanted].reshape(size)
        else:
            raise NotSupportedError("random.choice: replace=False with p has no stand-in; draw "
                                    "with numpy.random.Generator.choice")
        return drawn if isinstance(a, int) else _core.take(a, drawn)


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


_BY_LEARNER = "learner.etrace_grad(xs, ys, step_fn=...) gives gradients"
_LANES = "models run batches as they are; compile(model, rule, x, batch_size=n) adds the axis"

random = _Random()
init = _stand_ins.initializers(
    "brainstate.init", plain=False, spread="scale", ends=("min_val", "max_val"))
surrogate = _stand_ins.surrogates("brainstate.surrogate")
functional = _Place("brainstate.functional", _ACTIVATIONS)
nn = _Place("brainstate.nn", {
    **_ACTIVATIONS, **_PROJECTIONS, "init": init, "surrogate": surrogate, "Module": _nn.Module},
    {"Vmap": _LANES, "vmap_init_all_states": _LANES,
     "Dynamics": "nn.Module is the base of models, nn.Neuron of neurons",
     "RNNCell": "nn.Module is the base of cells",
     "exp_euler_step": "write the step with exp, as examples/python/13_custom_neuron.py does"},
    beneath=_nn)
transform = _Place("brainstate.transform", {
    "scan": _core.scan, "while_loop": _core.while_loop, "cond": _core.cond,
    "for_loop": _for_loop, "jit": _jit},
    {"grad": _BY_LEARNER, "vector_grad": _BY_LEARNER, "value_and_grad": _BY_LEARNER,
     "vmap": _LANES, "vmap2": _LANES, "vmap_new_states": _LANES,
     "checkpointed_for_loop": "BPTT(segments=n) keeps one segment",
     "checkpoint": "BPTT(segments=n) keeps one segment",
     "jacrev": "ExactRTRL is the rule with whole Jacobians"})
compile = _Place("brainstate.compile", vars(transform), transform._instead)


def __getattr__(name):
    """Names that have no stand-in say what to use."""
    instead = {"augment": _BY_LEARNER,
               "optim": "braintrace_cpp.Adam and others, optimizer.attach(model)",
               "mixin": "models need none"}
    raise AttributeError(_stand_ins.missing("brainstate", name, instead, globals()))
