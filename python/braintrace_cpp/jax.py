# SPDX-License-Identifier: Apache-2.0
"""Stand-in for the parts of jax that braintrace models use.

>>> from braintrace_cpp import jax
>>> float(jax.nn.relu(-1.0))
0.0
"""
from types import SimpleNamespace

from . import _core, numpy  # noqa: F401
from ._stand_ins import ACTIVATIONS


def _tree_map(f, tree, *rest):
    """f at every leaf of dicts, lists and tuples of one structure."""
    if isinstance(tree, dict):
        return {k: _tree_map(f, v, *(r[k] for r in rest)) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_tree_map(f, *items) for items in zip(tree, *rest))
    return f(tree, *rest)


def _jit(f=None, **options):
    """f itself: what a learner runs is compiled as a whole.

    >>> from braintrace_cpp import jax
    >>> jax.jit(len)([3, 4])
    2
    """
    return (lambda g: g) if f is None else f


jit = _jit
tree = SimpleNamespace(map=_tree_map)

nn = SimpleNamespace(**{name: ACTIVATIONS[name] for name in (
    "relu", "sigmoid", "softplus", "tanh", "gelu", "silu", "swish", "elu", "celu", "selu", "glu",
    "leaky_relu", "log_sigmoid", "log_softmax", "softmax", "logsumexp", "relu6", "soft_sign",
    "sparse_plus", "sparse_sigmoid", "squareplus", "hard_sigmoid", "hard_swish", "hard_tanh", "one_hot")})
lax = SimpleNamespace(scan=_core.scan, while_loop=_core.while_loop, cond=_core.cond,
                      stop_gradient=_core.stop_gradient)
