# SPDX-License-Identifier: Apache-2.0
"""Learners: a model with a learning rule, compiled, and the drivers over sequences."""
import json

from . import _core
from ._errors import CompilationError, UserRuntimeError, UserTypeError, UserValueError
from ._values import ETraceConfig, Gradients, MultiStepData, SingleStepData, _config_from_json


def _plain(x):
    return x.data if isinstance(x, SingleStepData) else x


def _batch_of(model):
    """The batch size the model's states were initialised with, None without."""
    for state in model.states().values():
        if state.kind.startswith("Hidden") and state.has_value:
            shape = state.value.shape
            return shape[0] if len(shape) > len(state.size) else None
    return None


class ETraceAlgorithm:
    """A model under a learning rule. Compile it with `compile_graph(*example_inputs)`, or make
    it with `compile(model, algorithm, *example_inputs)`.

    Subclasses are the rules (D_RTRL, pp_prop, ...); keywords are the rule's arguments and the
    options of the compiler.
    """

    _rule = None

    def __init__(self, model, *args, **options):
        if len(args) > 1 or (args and "decay_or_rank" in options):
            raise UserTypeError(f"{type(self).__name__}: takes the model and one argument")
        if args:
            options["decay_or_rank"] = args[0]
        names = set(_core.learner_option_names())
        self.model = model
        self._options = {k: v for k, v in options.items() if k in names}
        arguments = {k: v for k, v in options.items() if k not in names}
        self.algorithm = self._make_algorithm(arguments)
        self._learner = None

    def _make_algorithm(self, arguments):
        return _core.Algorithm(self._rule, arguments)

    # ---- compiling ----

    @property
    def is_compiled(self):
        """Whether compile_graph was called."""
        return self._learner is not None

    def compile_graph(self, *args):
        """Compiles for inputs like these. A second call does nothing."""
        if self._learner is None:
            saved = self.model.state_dict() if _initialised(self.model) else None
            options = dict(self._options)
            if "batch_size" not in options:
                options["batch_size"] = _batch_of(self.model)
            self._compile(options, args)
            if saved is not None:
                self.model.load_state_dict(saved)

    def _compile(self, options, args):
        self._learner = _core._Learner(self.model, self.algorithm, options, *map(_plain, args))

    def _compiled(self):
        if self._learner is None:
            raise UserValueError(f"{type(self).__name__}: call compile_graph(...) first")
        return self._learner

    # ---- one call ----

    def __call__(self, *args):
        """One step, or a window of MultiStepData. Inside a loss function: the compiled step."""
        learner = self._learner or self._compiled()
        multi = [isinstance(a, MultiStepData) for a in args]
        if True in multi:
            data = [a.data if m else _plain(a) for a, m in zip(args, multi)]
            return learner.call_window(multi, *data)
        return learner.call(*map(_plain, args))

    update = __call__

    def step(self, *args):
        """One step without a gradient."""
        return self._compiled().step(*args)

    def trace_loss(self, step_fn, *examples, has_aux=False):
        """A loss function traced once, for step_grad."""
        return self._compiled().trace_loss(step_fn, has_aux, *examples)

    def step_grad(self, *args, loss, weight=1.0):
        """(loss, gradients) of one step; states and traces move on."""
        return self._learner.step_grad(loss, weight, *args)

    # ---- sequences ----

    def etrace_grad(self, *sequences, step_fn, mask=None, chunk_size=None, weights=None,
                    reduction="mean", loss_output="per_step", has_aux=False,
                    return_value=False, progress=None, loss_sink=None, window=0,
                    window_bytes=64 << 20, carry_traces=True):
        """Gradients over sequences, taken step by step.

        `step_fn(x_t, y_t, ...)` calls the learner once and returns a scalar loss, with
        has_aux=True (loss, aux). Returns grads, (grads, losses), (grads, aux) or
        (grads, losses, aux). `progress` is a function (done, total), which stops the run by
        returning False, or an object with `update(n)` such as a tqdm bar. `window` steps run as
        one program (0: as many as fit window_bytes, 1: step by step); carry_traces=False: the
        sequence ends here, traces come out zero and cost nothing.
        """
        _check_sequences("etrace_grad", sequences, chunk_size)
        options = {
            "mask": mask, "chunk_size": _window(chunk_size), "weights": self._names(weights),
            "reduction": reduction, "loss_output": loss_output, "has_aux": has_aux,
            "progress": progress, "loss_sink": loss_sink, "window": window,
            "window_bytes": window_bytes, "carry_traces": carry_traces,
        }
        grads, losses, aux, _ = self._compiled().etrace_grad(step_fn, options, *sequences)
        out = [Gradients(grads)]
        if return_value:
            out.append(losses)
        if has_aux:
            out.append(aux)
        return out[0] if len(out) == 1 else tuple(out)

    def certificate(self, *sequences, step_fn, window=1):
        """Online gradients of these sequences beside those of back-propagation, parameter by
        parameter; the learner is as before when it returns. `print` shows the table."""
        _check_sequences("certificate", sequences, None)
        return self._compiled().certificate(step_fn, window, *sequences)

    def etrace_evolve(self, *sequences, step_fn=None, chunk_size=None, return_outputs=False):
        """The same steps without a gradient."""
        _check_sequences("etrace_evolve", sequences, chunk_size)
        if step_fn is None:
            return self._compiled().etrace_evolve(_window(chunk_size), return_outputs,
                                                  *sequences)
        values = [_core.Value(s) for s in sequences]
        outputs = [step_fn(*(v[t] for v in values)) for t in range(len(values[0]))]
        return _core.stack(outputs) if return_outputs else None

    def _names(self, weights):
        if weights is None:
            return []
        items = weights.values() if isinstance(weights, dict) else weights
        return [self._path_of(w) for w in items]

    def _path_of(self, weight):
        if isinstance(weight, str):
            return weight
        if isinstance(weight, tuple):
            return "/".join(map(str, weight))
        for path, state in self.model.states().items():
            if state is weight:
                return "/".join(map(str, path))
        raise UserValueError("weights: a state that is not the model's")

    # ---- states ----

    @property
    def path_to_states(self):
        """Every state of the model by path."""
        return self.model.states()

    def _states(self, wanted):
        return {p: s for p, s in self.model.states().items() if wanted(s.kind)}

    @property
    def param_states(self):
        """Parameters by path."""
        return self._states(lambda kind: kind == "ParamState")

    @property
    def hidden_states(self):
        """Hidden states by path."""
        return self._states(lambda kind: kind.startswith("Hidden"))

    @property
    def other_states(self):
        """States that are neither parameters nor hidden."""
        return self._states(lambda kind: kind == "ShortTermState")

    def init_etrace_state(self):
        """Traces as at compile time."""
        self._compiled().init_etrace_state()

    def reset_state(self, batch_size=None):
        """Counters and traces to zero; with a batch size, for that many samples."""
        self._compiled().reset_state(batch_size)

    def get_etrace_of(self, weight):
        """The traces of one parameter (a state or its path)."""
        return self._compiled().get_etrace_of(self._path_of(weight))

    def etraces(self):
        """Every trace: dicts of name, kind, key, relation, group and value."""
        return self._compiled().etraces()

    def set_etrace(self, name, value):
        """Replaces one trace, by the name etraces() gives."""
        self._compiled().set_etrace(name, value)

    def set_modulator(self, modulator):
        """The third factor of modulatory rules, kept until replaced."""
        self._compiled().set_modulator(modulator)

    # ---- files ----

    def save(self, path, optimizer=None, step=0, model="null"):
        """Weights, states, traces, counters and, when given, the optimiser, in one file."""
        learner = self._compiled()
        values = self.model.state_dict()
        weights = {k: v for k, v in values.items() if self._is_weight(k)}
        config = {"algorithm": self.algorithm.name, "calls": learner.running_index,
                  "trace_steps": learner.trace_steps}
        _core.Checkpoint(
            weights=weights, states={k: v for k, v in values.items() if k not in weights},
            traces={t["name"]: t["value"] for t in learner.etraces()},
            optimizer=optimizer.state_dict() if optimizer else {}, step=step, model=model,
            config=json.dumps(config)).save(str(path))

    def load(self, path, optimizer=None):
        """Goes on where `save` was called, bit for bit. Returns the step."""
        learner, stored = self._compiled(), _core.load_checkpoint(str(path))
        config = json.loads(stored.config)
        if config.get("algorithm") != self.algorithm.name:
            raise UserValueError(f"load: {path} was written by {config.get('algorithm')}, not by "
                                 f"{self.algorithm.name}")
        self.model.load_state_dict({**stored.weights, **stored.states})
        for name, value in stored.traces.items():
            learner.set_etrace(name, value)
        learner.set_counters(config["calls"], config["trace_steps"])
        if optimizer:
            optimizer.load_state_dict(stored.optimizer)
        return stored.step

    def _is_weight(self, leaf):
        paths = ("/".join(map(str, p)) for p in self.param_states)
        return any(leaf == p or leaf.startswith(p + "/") for p in paths)

    def memory_plan(self, window=0):
        """Every array the rule carries from step to step."""
        return _core.memory_plan(self.graph, self.algorithm, window)

    @property
    def running_index(self):
        """Calls so far."""
        return self._compiled().running_index

    # ---- what was compiled ----

    @property
    def graph(self):
        """The compiled ETraceGraph."""
        return self._compiled().graph

    @property
    def report(self):
        """A summary of the compiled graph."""
        if self._learner is None:
            raise UserRuntimeError(f"{type(self).__name__}: report before compile_graph")
        return self.graph.report

    @property
    def executor(self):
        """The learner itself runs the graph."""
        return self

    @property
    def config(self):
        """The rule's ETraceConfig."""
        return _config_from_json(self.algorithm.config.to_json())

    def show_graph(self, verbose=True, return_msg=False):
        """Prints which weights reach which hidden states, or returns the text."""
        text = self._compiled().report_text(int(verbose) if verbose else 1)
        if verbose and not return_msg:
            print(text)
        return text if return_msg else None

    def _repr_html_(self):
        return self.graph._repr_html_() if self.is_compiled else None


class ETraceVmap:
    """A learner compiled on one lane and mapped over the leading axis; see compile(vmap=True)."""


def _initialised(model):
    return all(s.has_value for s in model.states().values())


def _window(chunk_size):
    return None if chunk_size == 1 else chunk_size


def _check_sequences(who, sequences, chunk_size):
    if isinstance(chunk_size, bool) or not (chunk_size is None or isinstance(chunk_size, int)):
        raise UserTypeError(f"{who}: chunk_size must be an integer, got {chunk_size!r}")
    if chunk_size is not None and chunk_size < 1:
        raise UserValueError(f"{who}: chunk_size must be >= 1, got {chunk_size}")
    for s in sequences:
        if isinstance(s, (SingleStepData, MultiStepData)):
            raise UserTypeError(f"{who}: sequences are plain arrays, got {type(s).__name__}")


def _rule(name, rule, doc):
    return type(name, (ETraceAlgorithm,), {"_rule": rule, "__doc__": doc, "__module__": __name__})


D_RTRL = _rule("D_RTRL", "d_rtrl", "eps' = D eps + df x, without recurrent mixing in D.")
pp_prop = _rule("pp_prop", "pp_prop", "Smoothed inputs times smoothed output factors.")
ES_D_RTRL = pp_prop
EProp = _rule("EProp", "eprop", "D_RTRL with a filtered trace or fixed random feedback.")
OSTLRecurrent = _rule("OSTLRecurrent", "ostl_recurrent",
                      "D_RTRL with the own-position blocks of the whole Jacobian.")
OSTLFeedforward = _rule("OSTLFeedforward", "ostl_feedforward", "pp_prop that forgets at once.")
SnAp = _rule("SnAp", "snap", "D_RTRL over the positions a weight reaches within n steps.")
UORO = _rule("UORO", "uoro", "An unbiased rank-one estimate of the full sensitivities.")
ThreeFactor = _rule("ThreeFactor", "three_factor", "D_RTRL under a modulator from outside.")
DNI = _rule("DNI", "dni", "D_RTRL with a predicted gradient at the end of each window.")
Hybrid = _rule("Hybrid", "hybrid", "Per relation D_RTRL or pp_prop, whichever stores less.")
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
    "OSTLFeedforward", "OSTLRecurrent", "SingleStepData", "SnAp", "ThreeFactor", "UORO",
    "compile", "pp_prop",
]
