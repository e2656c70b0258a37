# SPDX-License-Identifier: Apache-2.0
"""A model with a learning rule, compiled, and the drivers over sequences."""
import json
from typing import Optional

from . import _core
from ._arguments import check_modulator, check_sequences, check_step_fn, listed_weights
from ._errors import UserRuntimeError, UserTypeError, UserValueError
from ._values import (Gradients, MultiStepData, PreparedGrad, SingleStepData, _as_asked,
                      _config_from_json)


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

    >>> import braintrace_cpp as bt
    >>> learner = bt.D_RTRL(bt.nn.init_all_states(bt.nn.GRUCell(3, 4)))
    >>> learner.compile_graph(bt.zeros(3))
    >>> isinstance(learner, bt.ETraceAlgorithm), learner(bt.ones(3)).shape
    (True, (4,))
    """

    _rule: Optional[str] = None

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

    def __call__(self, *args, modulator=None):
        """One step, or a window of MultiStepData. Inside a loss function: the compiled step.

        `modulator`: the third factor of a modulatory rule for this step alone, in place of the
        standing one; inside a loss function it may depend on the function's arguments."""
        learner = self._learner or self._compiled()
        for a in args:
            if isinstance(a, (MultiStepData, SingleStepData)):
                break
        else:
            if modulator is None:
                return learner.call(args)
        multi = [isinstance(a, MultiStepData) for a in args]
        if modulator is not None:
            check_modulator(type(self).__name__, modulator)
            if True in multi:
                raise UserValueError(f"{type(self).__name__}: a modulator goes with one step, "
                                     "not with MultiStepData")
            return learner.call_modulated(modulator, *map(_plain, args))
        if True in multi:
            data = [a.data if m else _plain(a) for a, m in zip(args, multi)]
            return learner.call_window(multi, *data)
        return learner.call(tuple(map(_plain, args)))

    update = __call__

    def step(self, *args):
        """One step without a gradient."""
        return (self._learner or self._compiled()).step(args)

    def trace_loss(self, step_fn, *examples, has_aux=False):
        """A loss function traced once, for step_grad and step_update."""
        return self._compiled().trace_loss(step_fn, has_aux, *examples)

    def step_grad(self, *args, loss, weight=1.0):
        """(loss, gradients) of one step; states and traces move on."""
        return (self._learner or self._compiled()).step_grad(loss, weight, args)

    def step_update(self, *args, loss, optimizer, weight=1.0):
        """The loss (has_aux: loss, aux) of one step that moves the parameters at once, as step_grad
        and `optimizer.update(model, grads)` would; gradients are stored nowhere."""
        return (self._learner or self._compiled()).step_update(loss, optimizer, weight, args)

    def modulated_grad(self, *args, modulator):
        """(outputs, gradients) of one step under a modulatory rule without a loss: the modulator
        alone is the signal. Parameters without a trace have gradient zero."""
        learner = self._learner or self._compiled()
        check_modulator("modulated_grad", modulator)
        outputs, grads = learner.modulated_grad(modulator, *map(_plain, args))
        return outputs, Gradients(grads)

    # ---- sequences ----

    def etrace_grad(self, *sequences, step_fn, steps=None, mask=None, chunk_size=None,
                    weights=None,
                    reduction="mean", loss_output="per_step", has_aux=False,
                    return_value=False, progress=None, loss_sink=None, window=0,
                    window_bytes=64 << 20, carry_traces=True, modulators=None):
        """Gradients over sequences, taken step by step.

        `step_fn(x_t, y_t, ...)` calls the learner once and returns a scalar loss, with
        has_aux=True (loss, aux). Returns grads, (grads, losses), (grads, aux) or
        (grads, losses, aux). `progress` is a function (done, total), which stops the run by
        returning False, or an object with `update(n)` such as a tqdm bar. `window` steps run as
        one program (0: as many as fit window_bytes, 1: step by step); carry_traces=False: the
        sequence ends here, traces come out zero and cost nothing.

        With `steps`, the only sequence is a function t -> arguments of step t (a tuple, or the
        only one), asked once per step: nothing grows with the length. `loss_sink(t, loss)` then
        takes the losses as they come, and none are returned.

        `modulators` of a modulatory rule: one per step, behind a leading time axis, in place of
        the standing one; with them step_fn=None takes the gradient without a loss. The mask
        weighs losses, not modulators.
        """
        check_sequences("etrace_grad", sequences, chunk_size, steps)
        check_step_fn("etrace_grad", step_fn, modulators)
        options = {
            "mask": mask, "chunk_size": _window(chunk_size), "weights": self._names(weights),
            "reduction": reduction, "loss_output": loss_output, "has_aux": has_aux,
            "progress": progress, "loss_sink": loss_sink, "window": window,
            "window_bytes": window_bytes, "carry_traces": carry_traces,
            "modulators": modulators,
        }
        learner = self._compiled()
        if steps is None:
            result = learner.etrace_grad(step_fn, options, *sequences)
        else:
            result = learner.etrace_grad_from(sequences[0], steps, step_fn, options)
        return _as_asked(result, return_value, has_aux)

    def prepare(self, *sequences, step_fn, mask=None, weights=None, reduction="mean",
                loss_output="per_step", has_aux=False, return_value=False, window=0,
                window_bytes=64 << 20, carry_traces=True, modulators=None):
        """etrace_grad for sequences of one shape, with the loss function traced once.

        Returns a PreparedGrad; its `grad(*sequences)` gives what etrace_grad would, bit by bit,
        without calling `step_fn` again: values the function captured stay as they were.
        """
        check_sequences("prepare", sequences, None)
        check_step_fn("prepare", step_fn, modulators)
        options = {
            "mask": mask, "chunk_size": None, "weights": self._names(weights),
            "reduction": reduction, "loss_output": loss_output, "has_aux": has_aux,
            "progress": None, "loss_sink": None, "window": window,
            "window_bytes": window_bytes, "carry_traces": carry_traces,
            "modulators": modulators,
        }
        prepared = self._compiled().prepare(step_fn, options, *sequences)
        return PreparedGrad(prepared, return_value, has_aux)

    def certificate(self, *sequences, step_fn, window=1):
        """Online gradients of these sequences beside those of back-propagation, parameter by
        parameter; the learner is as before when it returns. `print` shows the table."""
        check_sequences("certificate", sequences)
        return self._compiled().certificate(step_fn, window, *sequences)

    def etrace_evolve(self, *sequences, steps=None, step_fn=None, chunk_size=None,
                      return_outputs=False):
        """The same steps without a gradient. With `steps`, from a function t -> arguments, as
        etrace_grad; outputs are not kept then."""
        check_sequences("etrace_evolve", sequences, chunk_size, steps)
        if steps is not None:
            if return_outputs or step_fn is not None or chunk_size is not None:
                raise UserTypeError("etrace_evolve: from a function only `steps` can be given; "
                                    "outputs would grow with the length")
            return self._compiled().etrace_evolve_from(sequences[0], steps)
        if step_fn is None:
            return self._compiled().etrace_evolve(_window(chunk_size), return_outputs,
                                                  *sequences)
        values = [_core.Value(s) for s in sequences]
        outputs = [step_fn(*(v[t] for v in values)) for t in range(len(values[0]))]
        return _core.stack(outputs) if return_outputs else None

    def _names(self, weights):
        return [] if weights is None else [self._path_of(w) for w in listed_weights(weights)]

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

    def etraces(self, space="effective"):
        """Every trace: dicts of name, kind, key, relation, group and value. `space`: as stored
        ("effective"), or one per parameter leaf ("parameter"), what stands between parameter and
        op (a mask, a sign, a low-rank product) applied."""
        return self._compiled().etraces(space)

    def set_etrace(self, name, value):
        """Replaces one trace, by the name etraces() gives."""
        self._compiled().set_etrace(name, value)

    def set_modulator(self, modulator):
        """The third factor of modulatory rules, kept until replaced; None removes it."""
        self.modulator = modulator

    @property
    def modulator(self):
        """The standing third factor of a modulatory rule, or None: a number, or an array with one
        per position or sample, or one that broadcasts to (*varshape, num_state)."""
        return self._compiled().modulator

    @modulator.setter
    def modulator(self, modulator):
        learner = self._compiled()
        if modulator is not None:
            check_modulator("modulator", modulator)
        learner.set_modulator(modulator)

    def set_rule_input(self, name, value):
        """Injected noise and other inputs of the rule, by name."""
        self._compiled().set_rule_input(name, value)

    def set_feedback(self, matrices):
        """Fixed feedback of random-feedback rules: index of the group -> matrix."""
        self._compiled().set_feedback(matrices)

    @property
    def synthesizer(self):
        """The predictor of DNI, or None; set it before the first gradient."""
        return self._compiled().synthesizer

    @synthesizer.setter
    def synthesizer(self, predictor):
        self._compiled().set_synthesizer(predictor)

    def set_synthesizer(self, predictor):
        """Gives DNI its predictor, a SyntheticGradient."""
        self.synthesizer = predictor

    # ---- files ----

    def save(self, path, optimizer=None, step=0, model="null"):
        """Weights, states, traces, counters and, when given, the optimiser, in one file."""
        learner = self._compiled()
        learner.check_model("save")
        values = self.model.state_dict()
        weights = {k: v for k, v in values.items() if self._is_weight(k)}
        config = {"algorithm": self.algorithm.name, "calls": learner.running_index,
                  "trace_steps": learner.trace_steps}
        _core.Checkpoint(
            weights=weights, states={k: v for k, v in values.items() if k not in weights},
            traces={t["name"]: t["value"] for t in self.etraces()},
            optimizer=optimizer.state_dict() if optimizer else {}, step=step, model=model,
            config=json.dumps(config)).save(path)

    def load(self, path, optimizer=None):
        """Goes on where `save` was called, bit for bit. Returns the step. A file that does not fit
        changes nothing."""
        learner, stored = self._compiled(), _core.load_checkpoint(path)
        learner.restore(stored, optimizer)
        return stored.step

    def _is_weight(self, leaf):
        paths = ("/".join(map(str, p)) for p in self.param_states)
        return any(leaf == p or leaf.startswith(p + "/") for p in paths)

    def last_plan(self):
        """The kernels of the newest call, one per line; with profile=True and their times."""
        return self._compiled().last_plan()

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

    def __repr__(self):
        state = f"{self.running_index} calls" if self.is_compiled else "not compiled"
        return f"{type(self).__name__}({self.model!r}, {state})"

    def _repr_html_(self):
        return self.graph._repr_html_() if self.is_compiled else None


def _initialised(model):
    return all(s.has_value for s in model.states().values())


def _window(chunk_size):
    return None if chunk_size == 1 else chunk_size
