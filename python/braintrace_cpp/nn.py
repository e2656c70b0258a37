# SPDX-License-Identifier: Apache-2.0
"""Layers, cells, neurons, synapses and what models are written with.

Every class is built from the table of the library (`_core._layer_table`), so that signatures
and defaults are those of C++.
"""
import re

from . import _core
from ._core import (
    COBA,
    CUBA,
    HiddenGroupState,
    HiddenState,
    HiddenTreeState,
    LongTermState,
    MgBlock,
    Module,
    ParamState,
    RngState,
    ShortTermState,
    Surrogate,
    activation_names,
    build_model,
    init,
    init_all_states,
    model_kinds,
    surrogate_names,
)
from ._environ import environ


class Neuron(Module):
    """Base of the neurons of the library.

    >>> import braintrace_cpp as bt
    >>> lif = bt.nn.init_all_states(bt.nn.LIF(2))
    >>> _ = lif(bt.ones(2) * 100.0)
    >>> lif.get_spike().tolist()
    [1.0, 1.0]
    """

    def get_spike(self):
        """The spike of the present state (0 or 1, with the surrogate's derivative)."""
        return _core._neuron_spike(self)

    def add_current(self, current):
        """A current in mA for the next step."""
        _core._neuron_current(self, current)

    def add_delta(self, delta):
        """A jump of the potential in mV, after the next integration."""
        _core._neuron_delta(self, delta)

    @property
    def size(self):
        """The shape of the population."""
        return _core._neuron_size(self)


class Synapse(Module):
    """Base of the synapses of the library.

    >>> import braintrace_cpp as bt
    >>> synapse = bt.nn.init_all_states(bt.nn.Expon(2))
    >>> synapse.add_delta(bt.ones(2))
    >>> synapse().tolist()
    [1.0, 1.0]
    """

    @classmethod
    def desc(cls, *args, **kwargs):
        """A synapse for projections as brainstate writes them (brainstate.nn.AlignPostProj)."""
        from ._descriptions import Description
        return Description(cls, cls.__name__, args, kwargs)

    def add_delta(self, x):
        """Input of the next step."""
        _core._synapse_delta(self, x)

    @property
    def output(self):
        """What the last step returned."""
        return _core._synapse_value(self)


def _make_class(index, name, base, doc):
    parameters = re.findall(r"(\w+)(?:=[^,()]*(?:\([^)]*\))?)?(?:, |\)$)", doc.split("\n")[0])
    place = parameters.index("dt") if "dt" in parameters else None

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        if place is not None and "dt" not in kwargs and len(args) <= place:
            kwargs.update(environ.arguments(self))
        _core._build_layer(self, index, *args, **kwargs)

    return type(name, (base,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


_BASES = {"Module": Module, "Neuron": Neuron, "Synapse": Synapse}
_LAYERS = {
    name: _make_class(index, name, _BASES[base], doc)
    for index, (name, base, doc) in enumerate(_core._layer_table())
}
globals().update(_LAYERS)


def _keep_with_neuron(cls):
    """A neuron calls the synapses aligned to it, so these must live as long as it does."""
    build = cls.__init__

    def __init__(self, post, *args, **kwargs):
        build(self, post, *args, **kwargs)
        post.__dict__.setdefault("_aligned", []).append(self)

    cls.__init__ = __init__


_keep_with_neuron(_LAYERS["AlignPost"])
ValinaRNNCell = _LAYERS["VanillaRNNCell"]  # the name existing models use


def reset_all_states(model, batch_size=None):
    """States to their first values; parameters stay.

    >>> import braintrace_cpp as bt
    >>> cell = bt.nn.init_all_states(bt.nn.GRUCell(2, 3))
    >>> bt.nn.reset_all_states(cell, batch_size=5).h.value.shape
    (5, 3)
    """
    return init_all_states(model, batch_size=batch_size)


def __getattr__(name):
    """Surrogates and functions by name: nn.ReluGrad(width=2), nn.gelu(x)."""
    if name in surrogate_names():
        return lambda **parameters: Surrogate(name, **parameters)
    if name in activation_names() and hasattr(_core, name):
        return getattr(_core, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = [
    "COBA", "CUBA", "HiddenGroupState", "HiddenState", "HiddenTreeState", "LongTermState",
    "MgBlock", "Module", "Neuron", "ParamState", "RngState", "ShortTermState", "Surrogate", "Synapse",
    "ValinaRNNCell", "activation_names", "build_model", "init", "init_all_states",
    "model_kinds", "surrogate_names", *_LAYERS,
]
