# SPDX-License-Identifier: Apache-2.0
"""The environment of brainstate: the length of a step and the element type of numbers. Layers
that know time are told when they are made; there is nothing to look up while they run."""
import contextlib
import gc
import weakref

from . import _core
from ._errors import UserTypeError, UserValueError

_PRECISIONS = {32: "f32", "32": "f32", "f32": "f32", 64: "f64", "64": "f64", "f64": "f64"}
_INSTEAD = {"fit": "model.train() and model.eval() say which", "t": "count steps in the model",
            "i": "count steps in the model", "platform": "there is one, the CPU"}


def _length(dt):
    if isinstance(dt, bool) or not isinstance(dt, (int, float)):
        raise UserTypeError(f"environ.set: dt must be a number (of ms), got {dt!r}")
    if not 0 < dt < float("inf"):
        raise UserValueError(f"environ.set: dt must be > 0 and finite, got {dt!r}")
    return float(dt)


class _Environ:
    """What brainstate.environ holds."""

    def __init__(self):
        self._dt = None
        self._made = {}  # length of a step -> layers that took it as given or by default

    def set(self, *, dt=None, precision=None, **others):
        """dt: of layers made from now on that are not given one; precision: 32 or 64."""
        for name in others:
            raise UserTypeError(
                f"environ.set: no '{name}' here; "
                f"{_INSTEAD.get(name, 'there are dt and precision')}")
        if precision is not None:
            if precision not in _PRECISIONS:
                raise UserValueError(f"environ.set: precision must be 32 or 64, got {precision!r}")
            _core.set_default_dtype(_PRECISIONS[precision])
        if dt is not None:
            self._set_dt(_length(dt))

    def _others(self, dt):
        """(length of its step, name) of every layer that was told another dt."""
        return [(other, type(layer).__name__) for other, layers in self._made.items()
                if other != dt for layer in layers]

    def _set_dt(self, dt):
        if self._others(dt):
            gc.collect()  # models that nobody holds any more do not count
        for other, name in self._others(dt):
            raise UserValueError(
                f"environ.set: dt={dt:g}, but a layer {name} has dt={other:g}; set dt before "
                "layers are made, or give them dt=")
        self._dt = dt

    def get(self, name, default=None):
        """A setting; `default` unless it was set."""
        known = {"dt": self._dt, "precision": 8 * _core.default_dtype().itemsize}
        value = known.get(name)
        value = default if value is None else value
        if value is None:
            raise UserValueError(f"environ.get: '{name}' was not set; environ.set(dt=...)"
                                 if name == "dt" else
                                 f"environ.get: no '{name}' here; there are dt and precision")
        return value

    def get_dt(self):
        """The length of a step in ms."""
        return self.get("dt")

    @contextlib.contextmanager
    def context(self, **settings):
        """Layers made inside are told these settings."""
        dt, dtype = self._dt, _core.default_dtype()
        self.set(**settings)
        try:
            yield self
        finally:
            self._dt = dt
            _core.set_default_dtype(dtype)

    def arguments(self, layer):
        """For a layer that was given no dt: the one that was set, or none for its default, 1."""
        dt = 1.0 if self._dt is None else self._dt
        self._made.setdefault(dt, weakref.WeakSet()).add(layer)
        return {} if self._dt is None else {"dt": dt}


environ = _Environ()
