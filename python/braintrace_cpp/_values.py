# SPDX-License-Identifier: Apache-2.0
"""Plain values learners take and give."""
import json
from dataclasses import dataclass
from typing import Any

from . import _core


class ETraceConfig(_core._ETraceConfig):
    """A learning rule as a point on six axes.

    >>> ETraceConfig(recurrence_scope='coupled').recurrence_scope
    'coupled'
    """

    def __init__(self, **fields):
        super().__init__(json.dumps(fields))

    def replace(self, **changes):
        """A changed copy, checked again."""
        return type(self)(**{**json.loads(self.to_json()), **changes})

    def __reduce__(self):
        return _config_from_json, (self.to_json(),)


def _config_from_json(text):
    return ETraceConfig(**json.loads(text))


@dataclass(frozen=True)
class SingleStepData:
    """Data of one step; the same as the plain data.

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
    >>> learner(bt.SingleStepData(bt.ones(3))).shape
    (4,)
    """

    data: Any


@dataclass(frozen=True)
class MultiStepData:
    """Data with a leading time axis: several steps in one call.

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
    >>> learner(bt.MultiStepData(bt.ones((5, 3)))).shape
    (5, 4)
    """

    data: Any


class Gradients(dict):
    """Gradients by slash path; a tuple path gives a leaf, or a dict of the leaves below it.

    >>> g = Gradients({'out/weight/bias': 1.0, 'out/weight/weight': 2.0})
    >>> g[('out', 'weight')]
    {'bias': 1.0, 'weight': 2.0}
    """

    def __missing__(self, key):
        if isinstance(key, tuple):
            path = "/".join(map(str, key))
            if path in self:
                return self[path]
            below = {k[len(path) + 1:]: v for k, v in self.items() if k.startswith(path + "/")}
            if below:
                return below
        raise KeyError(key)


def _as_asked(result, return_value, has_aux):
    grads, losses, aux, _ = result
    out = [Gradients(grads)]
    if return_value:
        out.append(losses)
    if has_aux:
        out.append(aux)
    return out[0] if len(out) == 1 else tuple(out)


class PreparedGrad:
    """Gradients over sequences of one shape with one loss function; made by learner.prepare.

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
    >>> xs, ys = bt.ones((5, 3)), bt.zeros((5, 4))
    >>> prepared = learner.prepare(xs, ys, step_fn=lambda x, y: bt.mse(learner(x), y))
    >>> sorted(prepared.grad(xs, ys))[0]
    'Wh/weight/bias'
    """

    def __init__(self, prepared, return_value, has_aux):
        self._prepared, self._return_value, self._has_aux = prepared, return_value, has_aux

    def grad(self, *sequences, mask=None, modulators=None):
        """What etrace_grad returns for these sequences. A mask, or modulators, replace those
        before."""
        return _as_asked(self._prepared.grad(mask, modulators, *sequences), self._return_value,
                         self._has_aux)

    __call__ = grad
