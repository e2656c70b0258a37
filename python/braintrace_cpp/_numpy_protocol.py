# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy on a Value: ours of that name, so that they can be traced."""
import numpy

from . import _core
from . import numpy as _own_functions
from ._errors import UserTypeError


def _reflected(name):
    def own(a, b):
        return getattr(a, f"__{name}__")(b) if isinstance(a, _core.Value) else getattr(
            b, f"__r{name}__")(a)
    return own


_OPERATORS = {"floor_divide": _reflected("floordiv"), "remainder": _reflected("mod"),
              "bitwise_and": _reflected("and"), "bitwise_or": _reflected("or"),
              "bitwise_xor": _reflected("xor")}
_OTHER_NAMES = {"absolute": "abs", "amax": "max", "amin": "min"}
# Names that mean something else in NumPy.
_NOT_OURS = frozenset({"array", "asarray", "ndarray", "copy", "arange", "linspace", "eye"})


def _own(name):
    name = _OTHER_NAMES.get(name, name)
    if name in _NOT_OURS:
        return None
    return _OPERATORS.get(name) or getattr(_own_functions, name, None)


def _leaves(x):
    if isinstance(x, dict):
        x = x.values()
    elif not isinstance(x, (list, tuple)):
        return [x]
    return [leaf for item in x for leaf in _leaves(item)]


def _numbers(x):
    if isinstance(x, _core.Value):
        return numpy.asarray(x)
    if isinstance(x, (list, tuple)):
        return type(x)(_numbers(item) for item in x)
    if isinstance(x, dict):
        return {name: _numbers(item) for name, item in x.items()}
    return x


def _call(name, function, args, options):
    """Our function where there is one that takes the arguments, else NumPy's on the numbers,
    which a step that is traced does not have."""
    own = _own(name)
    values = [x for x in _leaves((args, options)) if isinstance(x, _core.Value)]
    traced = not all(v.is_concrete for v in values)
    if own is not None:
        try:
            return own(*args, **options)
        except TypeError:  # other arguments or element types than ours takes
            if traced:
                raise
    if traced:
        raise UserTypeError(f"numpy.{name}: there is no such function that can be traced, and "
                            "a symbolic value has no numbers while the step is traced; use ops")
    return function(*_numbers(args), **_numbers(options))


def _array_ufunc(self, ufunc, method, *inputs, **options):
    """numpy + Value and numpy.tanh(Value)."""
    own = _own(ufunc.__name__)
    if method == "__call__" and own is not None and not options:
        return own(*inputs)
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    return _call(name, getattr(ufunc, method), inputs, options)


def _array_function(self, function, types, args, kwargs):
    """numpy.mean(Value) and other functions that are no ufuncs."""
    if not all(issubclass(t, (_core.Value, numpy.ndarray)) for t in types):
        return NotImplemented
    return _call(function.__name__, function, args, kwargs)


setattr(_core.Value, "__array_ufunc__", _array_ufunc)
setattr(_core.Value, "__array_function__", _array_function)
