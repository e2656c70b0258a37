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
    """Data of one step; the same as the plain data."""

    data: Any


@dataclass(frozen=True)
class MultiStepData:
    """Data with a leading time axis: several steps in one call."""

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
