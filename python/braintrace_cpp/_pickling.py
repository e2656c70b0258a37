# SPDX-License-Identifier: Apache-2.0
"""How objects of the library are pickled and copied: as the call that made them and, where
they change, what they hold by now. Models and what refers to one are refused by name."""
import copyreg
import re

from . import _core
from ._errors import NotSupportedError
from ._learner import ETraceAlgorithm


def _call(path, args, kwargs):
    function = _core
    for part in path.split("."):
        function = getattr(function, part)
    return function(*args, **kwargs)


def _as_it_was_made(item):
    return _call, item._made


def _optimizer(rule, arguments, state):
    optimizer = _core.Optimizer(rule, **arguments)
    optimizer.load_state_dict(state)
    return optimizer


def _reduce_optimizer(optimizer):
    return _optimizer, (*optimizer._arguments, optimizer.state_dict())


def _surrogate(name, parameters):
    return _core.Surrogate(name, **parameters)


def _reduce_surrogate(surrogate):
    numbers = re.findall(r"(\w+)=([^,)]+)", repr(surrogate))
    return _surrogate, (surrogate.name, {name: float(n) for name, n in numbers})


def _leaky_sum(decay, value):
    grads = _core.GradExpon(decay=decay)
    grads._restore(value)
    return grads


def _reduce_leaky_sum(grads):
    return _leaky_sum, (grads.decay, grads.value)


def _predictor(shapes, parameters):
    predictor = _core.SyntheticGradient(shapes)
    for group, (w, b) in parameters.items():
        predictor.set_parameters(group, w, b)
    return predictor


def _reduce_predictor(predictor):
    shapes = predictor.group_shapes
    return _predictor, (shapes, {group: predictor.parameters(group) for group in shapes})


def _checkpoint(fields):
    return _core.Checkpoint(**fields)


def _reduce_checkpoint(stored):
    names = ("weights", "states", "traces", "optimizer", "step", "model", "config")
    return _checkpoint, ({name: getattr(stored, name) for name in names},)


def _reduce_structure(s):
    return _call, ("coo_structure", (s.in_size, s.out_size, s.rows, s.cols), {})


def _reduce_program(program):
    return _call, ("parse_graph", (str(program),), {})


for _kind, _reduce in ((_core.init.Initializer, _as_it_was_made),
                       (_core.schedule.Schedule, _as_it_was_made),
                       (_core.Task, _as_it_was_made),
                       (_core.SynapseOutput, _as_it_was_made),
                       (_core.Optimizer, _reduce_optimizer),
                       (_core.Surrogate, _reduce_surrogate),
                       (_core.GradExpon, _reduce_leaky_sum),
                       (_core.SyntheticGradient, _reduce_predictor),
                       (_core.Checkpoint, _reduce_checkpoint),
                       (_core.SparseStructure, _reduce_structure),
                       (_core.Graph, _reduce_program)):
    copyreg.pickle(_kind, _reduce)


def _refuse(what):
    def __reduce__(self):
        raise NotSupportedError(f"pickle: {type(self).__name__} {what}")
    return __reduce__


setattr(_core.Module, "__reduce__", _refuse(
    "is a model, which is code: pickle model.state_dict(), build the model again and give it to "
    "load_state_dict(...)"))
setattr(_core.State, "__reduce__", _refuse("belongs to a model; pickle its value"))
setattr(_core.ETraceGraph, "__reduce__", _refuse(
    "refers to its model; compile again, or keep to_json()"))
setattr(ETraceAlgorithm, "__reduce__", _refuse(
    "is compiled from a model; save(file) keeps all of its numbers"))
for _kind in (_core.HiddenGroup, _core.HiddenParamOpRelation, _core.HiddenPerturbation,
              _core.ModuleInfo, _core.StepModel, _core.ScanDescentInfo, _core.SnapPattern,
              _core.CutEntry):
    setattr(_kind, "__reduce__", _refuse(
        "is part of a compiled graph; compile again, or keep the graph's to_json() or report"))
for _kind in (_core.ETraceGraphExecutor, _core.ETraceVjpGraphExecutor, _core.LossHandle):
    setattr(_kind, "__reduce__", _refuse("is compiled from a model; make it again from the model"))
