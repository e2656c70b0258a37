# SPDX-License-Identifier: Apache-2.0
"""Learning rules by name, and how a model becomes a learner."""
from numbers import Integral
from typing import Any, Optional, Type, Union

from . import _core
from ._errors import CompilationError, UserError, UserTypeError, UserValueError
from ._learner import ETraceAlgorithm
from ._values import ETraceConfig, Gradients, MultiStepData, PreparedGrad, SingleStepData


class ETraceVmap:
    """A learner compiled on one lane and mapped over the leading axis; see compile(vmap=True).

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros((2, 3)), batch_size=2,
    ...                      vmap=True)
    >>> isinstance(learner, bt.ETraceVmap)
    True
    """


def _shown(arguments=""):
    """Adds an example to the docstring of a rule."""
    def complete(cls):
        cls.__doc__ += f"""

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 4), bt.{cls.__name__}, bt.zeros(3){arguments})
    >>> learner(bt.ones(3)).shape
    (4,)
    """
        return cls
    return complete


class _Engine(ETraceAlgorithm):
    """A way of storing traces: takes any config of its factorization."""

    def _make_algorithm(self, arguments):
        if arguments.get("config") is not None:
            self._check_config(arguments["config"])
        return super()._make_algorithm(arguments)

    def _check_config(self, config):
        if not isinstance(config, ETraceConfig):
            raise UserTypeError(f"{type(self).__name__}: config must be an ETraceConfig, got "
                                f"{config!r}")


@_shown()
class ParamDimVjpAlgorithm(_Engine):
    """One trace per weight entry and state, with any config of factorization per_param."""

    _rule = "d_rtrl"


@_shown(", decay_or_rank=0.9")
class IODimVjpAlgorithm(_Engine):
    """One factor per input and one per output, with any config of factorization io_factorized."""

    _rule = "pp_prop"


@_shown()
class RandomProjectionVjpAlgorithm(_Engine):
    """A rank-one estimate, with any config of factorization random_projection."""

    _rule = "uoro"

    def _make_algorithm(self, arguments):
        config = arguments.pop("config", None)
        if config is None:
            return super()._make_algorithm(arguments)
        self._check_config(config)
        if config.trace_factorization != "random_projection":
            raise UserValueError(f"{type(self).__name__}: needs trace_factorization "
                                 f"random_projection, got {config.trace_factorization}")
        return _core.Algorithm.from_config(config, arguments)


@_shown()
class D_RTRL(ParamDimVjpAlgorithm):
    """eps' = D eps + df x, without recurrent mixing in D."""


@_shown(", decay_or_rank=0.9")
class pp_prop(IODimVjpAlgorithm):
    """Smoothed inputs times smoothed output factors."""


ES_D_RTRL = pp_prop


@_shown()
class EProp(ParamDimVjpAlgorithm):
    """D_RTRL with a filtered trace or fixed random feedback."""

    _rule = "eprop"


@_shown()
class OSTLRecurrent(ParamDimVjpAlgorithm):
    """D_RTRL with the own-position blocks of the whole Jacobian."""

    _rule = "ostl_recurrent"


@_shown()
class OSTLFeedforward(IODimVjpAlgorithm):
    """pp_prop that forgets at once."""

    _rule = "ostl_feedforward"


@_shown(", n=2")
class SnAp(ParamDimVjpAlgorithm):
    """D_RTRL over the positions a weight reaches within n steps."""

    _rule = "snap"


@_shown()
class UORO(RandomProjectionVjpAlgorithm):
    """An unbiased rank-one estimate of the full sensitivities."""


class ThreeFactor(ParamDimVjpAlgorithm):
    """D_RTRL under a modulator from outside: the third factor beside input and neuron.

    It comes with a call (`learner.update(x, modulator=m)` inside a loss function), stands until
    replaced (`learner.modulator = m`), or is the whole signal, without a loss:

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 4), bt.ThreeFactor, bt.zeros(3))
    >>> outputs, grads = learner.modulated_grad(bt.ones(3), modulator=0.5)
    >>> outputs.shape, grads['Wh/weight/bias'].shape
    ((4,), (4,))
    """

    _rule = "three_factor"


@_shown()
class DNI(ParamDimVjpAlgorithm):
    """D_RTRL with a predicted gradient at the end of each window."""

    _rule = "dni"


@_shown(", decay_or_rank=0.9")
class Hybrid(ETraceAlgorithm):
    """Per relation D_RTRL or pp_prop, whichever stores less."""

    _rule = "hybrid"


# Engines under their short names, those of the C++ library.
ParamDim, IODim, RandomProjection = (ParamDimVjpAlgorithm, IODimVjpAlgorithm,
                                     RandomProjectionVjpAlgorithm)
HybridDim = HybridDimVjpAlgorithm = Hybrid
ETraceVjpAlgorithm = ETraceAlgorithm


@_shown()
class ExactRTRL(ETraceAlgorithm):
    """Full sensitivities. Exact; for small networks."""

    _rule = "rtrl"


@_shown()
class BPTT(ETraceAlgorithm):
    """Reverse mode through the whole sequence. Exact."""

    _rule = "bptt"


class Auto(ETraceAlgorithm):
    """The first of D_RTRL, Hybrid and pp_prop whose traces fit into `memory` (bytes, or a text
    such as "64MB"); `decay_or_rank` is that of the factorized rules.

    >>> import braintrace_cpp as bt
    >>> cell = bt.nn.MiniGRU(30, 40)
    >>> bt.compile(cell, "auto", bt.zeros(30), memory="1MB").algorithm.name
    'D_RTRL'
    >>> bt.compile(cell, "auto", bt.zeros(30), memory="4KB").algorithm.name
    'Hybrid'
    """

    _rule = "d_rtrl"

    def __init__(self, model: _core.Module, *, memory: Union[int, str, None] = None,
                 decay_or_rank: float = 0.9, **options: Any) -> None:
        if isinstance(memory, bool) or not isinstance(memory, (Integral, str)):
            raise UserTypeError('Auto: memory must be bytes or a text such as "64MB", got '
                                f"{memory!r}")
        self._budget = _core.parse_bytes(memory) if isinstance(memory, str) else int(memory)
        self._decay = decay_or_rank
        super().__init__(model, **options)

    def _compile(self, options, args):
        super()._compile(options, args)
        first, self._learner = self._learner, None  # stays so when nothing fits
        chosen = _core.choose_algorithm(first.graph, self._budget, self._decay).algorithm
        if chosen == self.algorithm:
            self._learner = first
            return
        self.algorithm = chosen
        super()._compile(options, args)


_RULES: dict[str, Type[Any]] = {
    str(c._rule): c for c in (D_RTRL, pp_prop, EProp, OSTLRecurrent, OSTLFeedforward, SnAp, UORO,
                              ThreeFactor, DNI, Hybrid, ExactRTRL, BPTT)}
_RULES.update(es_d_rtrl=pp_prop, esd_rtrl=pp_prop, e_prop=EProp, auto=Auto)


class _FromConfig(ETraceAlgorithm):
    """The rule of a config."""

    def __init__(self, model, *, config, **options):
        self._config = config
        super().__init__(model, **options)

    def _make_algorithm(self, arguments):
        return _core.Algorithm.from_config(self._config, arguments)


def _resolve(algorithm: Any, options: dict[str, Any]) -> tuple[Type[Any], dict[str, Any]]:
    if isinstance(algorithm, ETraceConfig):
        if "config" in options:
            raise UserTypeError("compile: the algorithm is a config already; drop config=")
        return _FromConfig, {"config": algorithm}
    if isinstance(algorithm, str):
        name = algorithm.strip().lower()
        if name not in _RULES:
            raise UserValueError(
                f"compile: no algorithm '{algorithm}'; there are {', '.join(sorted(_RULES))}")
        return _RULES[name], {}
    if isinstance(algorithm, type) and issubclass(algorithm, ETraceAlgorithm):
        return algorithm, {}
    raise UserTypeError("compile: algorithm must be a class, a name or an ETraceConfig, got "
                        f"{algorithm!r}")


def compile(model: _core.Module, algorithm: Union[str, Type[ETraceAlgorithm], ETraceConfig],
            *example_inputs: Any, batch_size: Optional[int] = None, seed: Optional[int] = None,
            verbose: int = 0, vmap: bool = False, **options: Any) -> ETraceAlgorithm:
    """Initialises the model's states, compiles it and returns a learner.

    `algorithm` is a rule, its name, an ETraceConfig, or "auto" with memory="64MB": the best rule
    whose traces fit.

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
    >>> learner(bt.ones(3)).shape
    (4,)
    """
    if not example_inputs:
        raise UserValueError("compile: at least one example input is needed")
    if verbose not in (0, 1, 2):
        raise UserValueError(f"compile: verbose must be 0, 1 or 2, got {verbose}")
    cls, extra = _resolve(algorithm, options)
    if vmap:
        cls = type(cls.__name__, (cls, ETraceVmap), {"__module__": __name__})
    learner = cls(model, **extra, **options)
    settings = {**learner._options, "batch_size": batch_size, "seed": seed, "vmap": vmap}
    try:
        learner._compile(settings, example_inputs)
    except UserError as error:
        hint = _batch_hint(learner, settings, example_inputs)
        if not hint:
            raise
        raise type(error)(f"{error}; {hint}") from error
    if verbose:
        learner.show_graph(verbose)
    return learner


def _batch_hint(learner, settings, examples):
    """What to add to an error when the examples and batch_size do not fit each other."""
    shape, batch_size = tuple(getattr(examples[0], "shape", ())), settings["batch_size"]
    if isinstance(batch_size, Integral) and batch_size > 0 and shape[:1] != (batch_size,):
        return f"with batch_size={batch_size} inputs begin with an axis of that size, got {shape}"
    if batch_size is not None or len(shape) < 2:
        return ""
    try:
        learner._compile({**settings, "batch_size": shape[0]}, examples)
    except Exception:  # any failure: the batch size is not what is missing
        return ""
    learner._learner = None
    return f"the inputs fit with batch_size={shape[0]}"


__all__ = [
    "Auto", "BPTT", "CompilationError", "DNI", "D_RTRL", "EProp", "ES_D_RTRL", "ETraceAlgorithm",
    "ETraceConfig", "ETraceVjpAlgorithm", "ETraceVmap", "ExactRTRL", "Gradients", "Hybrid",
    "HybridDim", "HybridDimVjpAlgorithm", "IODim", "IODimVjpAlgorithm", "MultiStepData",
    "OSTLFeedforward", "OSTLRecurrent", "ParamDim", "ParamDimVjpAlgorithm", "PreparedGrad",
    "RandomProjection", "RandomProjectionVjpAlgorithm", "SingleStepData", "SnAp",
    "ThreeFactor", "UORO", "compile", "pp_prop",
]
