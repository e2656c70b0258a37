# SPDX-License-Identifier: Apache-2.0
"""Stand-in for the parts of jax that braintrace models use.

>>> from braintrace_cpp import jax
>>> float(jax.nn.relu(-1.0))
0.0
"""
from types import SimpleNamespace

from . import _core, numpy  # noqa: F401


def _tree_map(f, tree, *rest):
    """f at every leaf of dicts, lists and tuples of one structure."""
    if isinstance(tree, dict):
        return {k: _tree_map(f, v, *(r[k] for r in rest)) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_tree_map(f, *items) for items in zip(tree, *rest))
    return f(tree, *rest)


tree = SimpleNamespace(map=_tree_map)

nn = SimpleNamespace(
    **{name: getattr(_core, name) for name in (
        "relu", "sigmoid", "softplus", "tanh", "gelu", "silu", "elu", "celu", "selu", "glu",
        "leaky_relu", "log_sigmoid", "log_softmax", "softmax", "logsumexp", "relu6",
        "soft_sign", "hard_sigmoid", "hard_swish", "one_hot")})
lax = SimpleNamespace(scan=_core.scan, while_loop=_core.while_loop, cond=_core.cond,
                      stop_gradient=_core.stop_gradient)
