# SPDX-License-Identifier: Apache-2.0
"""Online learning for recurrent and spiking networks.

>>> import braintrace_cpp as bt
>>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))
>>> bt.compile_etrace_graph(gru, bt.zeros(3)).hidden_groups[0].hidden_paths
[('h',)]
"""
from . import _core, _numpy_protocol, _pickling, _tables, nn
from ._core import *  # noqa: F401,F403
from ._core import __version__, data, schedule, tasks
from ._compile import *  # noqa: F401,F403
from ._errors import (
    CompilationError,
    InternalError,
    NotSupportedError,
    UserError,
    UserNotImplementedError,
    UserRuntimeError,
    UserTypeError,
    UserValueError,
)
from ._optimizers import SGD, Adam, AdamW, Lion, RMSprop
from ._training import TrainingRun, export_learner, train_synthetic_gradient

array = asarray = Value  # noqa: F405
