# SPDX-License-Identifier: Apache-2.0
"""Learning rules by name, and how a model becomes a learner."""
from . import _core
from ._errors import CompilationError, UserTypeError, UserValueError
from ._learner import ETraceAlgorithm
from ._values import ETraceConfig, Gradients, MultiStepData, PreparedGrad, SingleStepData


class ETraceVmap:
    """A learner compiled on one lane and mapped over the leading axis; see compile(vmap=True)."""


def _rule(name, rule, doc, arguments=""):
    example = f"""{doc}

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 4), bt.{name}, bt.zeros(3){arguments})
    >>> learner(bt.ones(3)).shape
    (4,)
    """
    return type(name, (ETraceAlgorithm,),
                {"_rule": rule, "__doc__": example, "__module__": __name__})


D_RTRL = _rule("D_RTRL", "d_rtrl", "eps' = D eps + df x, without recurrent mixing in D.")
pp_prop = _rule("pp_prop", "pp_prop", "Smoothed inputs times smoothed output factors.",
                ", decay_or_rank=0.9")
ES_D_RTRL = pp_prop
EProp = _rule("EProp", "eprop", "D_RTRL with a filtered trace or fixed random feedback.")
OSTLRecurrent = _rule("OSTLRecurrent", "ostl_recurrent",
                      "D_RTRL with the own-position blocks of the whole Jacobian.")
OSTLFeedforward = _rule("OSTLFeedforward", "ostl_feedforward", "pp_prop that forgets at once.")
SnAp = _rule("SnAp", "snap", "D_RTRL over the positions a weight reaches within n steps.",
             ", n=2")
UORO = _rule("UORO", "uoro", "An unbiased rank-one estimate of the full sensitivities.")
ThreeFactor = _rule("ThreeFactor", "three_factor", "D_RTRL under a modulator from outside.")
DNI = _rule("DNI", "dni", "D_RTRL with a predicted gradient at the end of each window.")
Hybrid = _rule("Hybrid", "hybrid", "Per relation D_RTRL or pp_prop, whichever stores less.",
               ", decay_or_rank=0.9")
ExactRTRL = _rule("ExactRTRL", "rtrl", "Full sensitivities. Exact; for small networks.")
BPTT = _rule("BPTT", "bptt", "Reverse mode through the whole sequence. Exact.")
_RULES = {c._rule: c for c in (D_RTRL, pp_prop, EProp, OSTLRecurrent, OSTLFeedforward, SnAp, UORO,
                               ThreeFactor, DNI, Hybrid, ExactRTRL, BPTT)}
_RULES.update(es_d_rtrl=pp_prop, esd_rtrl=pp_prop, e_prop=EProp)


class _FromConfig(ETraceAlgorithm):
    """The rule of a config."""

    def __init__(self, model, *, config, **options):
        self._config = config
        super().__init__(model, **options)

    def _make_algorithm(self, arguments):
        return _core.Algorithm.from_config(self._config, arguments)


def _resolve(algorithm, options):
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


def compile(model, algorithm, *example_inputs, batch_size=None, seed=None, verbose=0,
            vmap=False, **options):
    """Initialises the model's states, compiles it and returns a learner.

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
    learner._compile({**learner._options, "batch_size": batch_size, "seed": seed, "vmap": vmap},
                     example_inputs)
    if verbose:
        learner.show_graph(verbose)
    return learner


__all__ = [
    "BPTT", "CompilationError", "DNI", "D_RTRL", "EProp", "ES_D_RTRL", "ETraceAlgorithm",
    "ETraceConfig", "ETraceVmap", "ExactRTRL", "Gradients", "Hybrid", "MultiStepData",
    "OSTLFeedforward", "OSTLRecurrent", "PreparedGrad", "SingleStepData", "SnAp",
    "ThreeFactor", "UORO", "compile", "pp_prop",
]
