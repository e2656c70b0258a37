# SPDX-License-Identifier: Apache-2.0
"""What the stand-ins for brainstate and braintools share: places with names that say what to use
where there is nothing, initialisers, spike functions and activations."""
import re

from . import _core
from ._errors import UserTypeError


class Place:
    """Names of one module of the original; others are refused with what to use."""

    def __init__(self, name, names, instead=None, beneath=None):
        self.__dict__.update(names)
        self._name, self._instead, self._beneath = name, instead or {}, beneath

    def __getattr__(self, name):
        if not name.startswith("_"):
            if self._beneath is not None and hasattr(self._beneath, name):
                return getattr(self._beneath, name)
            known = {} if self._beneath is not None else vars(self)
            raise AttributeError(missing(self._name, name, self._instead, known))
        raise AttributeError(f"{self._name} has no '{name}'")

    def __repr__(self):
        return f"<stand-in for {self._name}>"


def missing(place, name, instead, names):
    """Why there is no `place.name` here and what to use."""
    if name in instead:
        return f"{place}.{name} has no stand-in; {instead[name]}"
    known = ", ".join(sorted(n for n in names if not n.startswith("_")))
    return f"{place}.{name} has no stand-in; " + (
        f"there are {known}" if known else "docs/nn.md has what there is")


# ---- initialisers ----

def _initializer(place, name, make, parameters):
    def build(*args, **kwargs):
        if len(args) > len(parameters):
            raise UserTypeError(
                f"{place}.{name}: takes ({', '.join(parameters)}), got {len(args)} arguments")
        given = dict(zip(parameters, args))
        for key, value in kwargs.items():
            if key not in parameters or key in given:
                raise UserTypeError(
                    f"{place}.{name}: no argument '{key}' here; there are "
                    f"{', '.join(parameters) or 'none'}; numbers have no units, and seeds are "
                    "those of init_all_states or compile")
            given[key] = value
        return make(**{parameters[key]: value for key, value in given.items()})

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name}({', '.join(parameters)}): braintrace_cpp.init of that kind."
    return build


def initializers(place, plain, spread, ends):
    """Those of brainstate (`plain` False) and braintools (True), whose laws differ; `spread` and
    `ends` are the names of the width of a normal and the ends of a uniform law."""
    init, found = _core.init, {}

    def add(name, make, **parameters):
        for alias in (name, name + "Init") if not name.endswith("Init") else (name,):
            found[alias] = _initializer(place, alias, make, parameters)

    add("ZeroInit", init.zero)
    add("Constant", init.constant, value="value")
    add("Identity", init.identity, value="scale")
    add("Normal", init.normal, mean="mean", **{spread: "std"})
    add("Uniform", init.uniform, **{ends[0]: "low", ends[1]: "high"})
    add("Orthogonal", init.orthogonal, scale="scale")
    for law in ("Kaiming", "Xavier", "Lecun"):
        for form in ("Normal", "Uniform"):
            make = getattr(init, f"{law}_{form}".lower())
            add(law + form, lambda make=make, **k: make(plain=plain, **k), scale="scale")
    cut = "init.truncated_normal(mean, std) is cut at two standard deviations"
    other = "give the layer an array, or a function (key, shape, dtype) -> array"
    return Place(place, found, {
        "TruncatedNormal": cut, "TruncatedNormalInit": cut, "VarianceScaling": other,
        "DeltaOrthogonal": other, "param": "give the initialiser to HiddenState or ParamState"},
        beneath=init)


# ---- spike functions ----

def _surrogate(name):
    parameters = re.findall(r"(\w+)=", repr(_core.Surrogate(name)))

    def build(*args, **kwargs):
        if len(args) > len(parameters):
            raise UserTypeError(f"{name}: takes ({', '.join(parameters)}), got {len(args)} "
                                "arguments")
        return _core.Surrogate(name, **dict(zip(parameters, args)), **kwargs)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name}({', '.join(parameters)}): the spike function of that name."
    return build


def surrogates(place):
    """Spike functions by their names, with their numbers in order or by name."""
    classes = {name: _surrogate(name) for name in _core.surrogate_names()}
    calls = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(): f"call {place}.{name}(...)(x)"
             for name in classes}
    return Place(place, classes, calls)


# ---- activations ----

def _leaky_relu(x, negative_slope=0.01):
    return _core.leaky_relu(x, negative_slope)


def _hard_tanh(x, min_val=-1.0, max_val=1.0):
    return _core.clip(x, min_val, max_val)


def _softmin(x, axis=-1):
    return _core.softmax(-_core.Value(x), axis)


ACTIVATIONS = {name: getattr(_core, name) for name in _core.activation_names()
               if hasattr(_core, name)}
ACTIVATIONS.update(
    leaky_relu=_leaky_relu, hard_tanh=_hard_tanh, softmin=_softmin, swish=_core.silu,
    identity=lambda x: x, one_hot=_core.one_hot, logsumexp=_core.logsumexp)
