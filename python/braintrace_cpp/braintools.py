# SPDX-License-Identifier: Apache-2.0
"""Stand-in for the parts of braintools that braintrace models use: initialisers, whose laws are
not those of brainstate, and spike functions.

>>> from braintrace_cpp import braintools
>>> braintools.init.KaimingNormal(scale=3.0)
kaiming_normal(scale=3.0, plain=True)
>>> braintools.surrogate.Sigmoid(2.0)
Sigmoid(alpha=2)
"""
from . import _stand_ins

init = _stand_ins.initializers("braintools.init", plain=True, spread="std", ends=("low", "high"))
surrogate = _stand_ins.surrogates("braintools.surrogate")


def __getattr__(name):
    """Names that have no stand-in say what to use."""
    instead = {"optim": "braintrace_cpp.Adam and others, optimizer.attach(model)",
               "metric": "braintrace_cpp.softmax_cross_entropy, nll, mse, l1 and others are means",
               "input": "make the currents with NumPy"}
    raise AttributeError(_stand_ins.missing("braintools", name, instead, globals()))
