# SPDX-License-Identifier: Apache-2.0
"""Whole training runs, predictors of DNI, and learners as headers."""
import json

from . import _core
from ._compile import _resolve
from ._errors import UserTypeError
from ._learner import ETraceAlgorithm
from ._values import Gradients


class _OfRun(ETraceAlgorithm):
    """The learner a run made."""

    def __init__(self, model, algorithm, learner):
        self.model, self.algorithm, self._learner = model, algorithm, learner
        self._options = {}


class TrainingRun:
    """A task, a model, a rule and an optimiser: a loop that stops at any update and goes on bit
    for bit.

    Keywords: batch (samples of an update), update ("sequence", or "step": weights move at every
    scored step; not for BPTT), the rule's arguments and the options of compile.

    >>> import braintrace_cpp as bt
    >>> model = bt.nn.Sequential(bt.nn.GRUCell(1, 8), bt.nn.Linear(8, 1))
    >>> run = bt.TrainingRun(bt.tasks.integrator(), model, "d_rtrl", bt.Adam(lr=1e-2), batch=4)
    >>> run.train(updates=2, evaluate_every=1, samples=4)
    True
    >>> len(run.log.training), len(run.log.evaluations)
    (2, 3)
    """

    def __init__(self, task, model, algorithm, optimizer, *, batch=32, update="sequence",
                 **options):
        cls, extra = _resolve(algorithm, options)
        rule = cls(model, **extra, **options)
        self.task, self.model = task, model
        self._run = _core._TrainingRun(task, model, rule.algorithm, optimizer, batch, update,
                                       rule._options)
        self.learner = _OfRun(model, rule.algorithm, self._run.learner)

    def train(self, updates, *, evaluate_every=0, samples=256, raster_units=0, on_update=None,
              on_evaluation=None, progress=None):
        """Trains until so many batches are done in all, those before a restore included.

        `on_update(done, log)` comes after every batch and stops the run by returning False;
        `on_evaluation(log)` after every test on `samples` samples not trained on. `progress`: as
        etrace_grad, in batches. True when the end was reached.
        """
        return self._run.train(updates, evaluate_every, samples, raster_units, on_update,
                               on_evaluation, progress)

    def update(self):
        """One batch. Its mean loss before the update."""
        return self._run.update()

    def gradient(self, batch):
        """(gradients, loss) of one batch of the task at the present weights."""
        grads, loss = self._run.gradient(batch)
        return Gradients(grads), loss

    @property
    def updates(self):
        """Batches so far."""
        return self._run.updates

    @property
    def log(self):
        """What happened so far."""
        return self._run.log

    @property
    def optimizer(self):
        """The run's own optimiser."""
        return self._run.optimizer

    def certificate(self, window=1):
        """The rule beside back-propagation on a batch that was not trained on."""
        return self._run.certificate(window)

    def checkpoint(self):
        """All that the batches to come depend on, and the log."""
        stored = self._run.checkpoint()
        config = {**json.loads(stored.config), "log": json.loads(self.log.to_json())}
        return stored.replace(config=json.dumps(config))

    def restore(self, checkpoint):
        """Goes on where `checkpoint` was called."""
        log = json.loads(checkpoint.config).get("log")
        self._run.restore(checkpoint, json.dumps(log) if log else "")

    def save(self, path):
        """The checkpoint as a file: the old or the new one, never half of it."""
        self.checkpoint().save(path)

    def load(self, path):
        """Goes on where `save` was called, bit for bit. Returns the batches done."""
        self.restore(_core.load_checkpoint(path))
        return self.updates

    def report(self, path=None, *, title=None, certificate=True):
        """One self-contained HTML page about the run: curves, spikes, graph, equations, memory
        and certificate. Returns the text, and writes it when a path is given."""
        name = title or f"{type(self.model).__name__} on {self.task.name}"
        text = self._run.page(name, certificate)
        if path is not None:
            _core._write_file(path, text)
        return text


def export_learner(learner, step_fn, *examples, out=None, name="learner", arguments=(),
                   results=(), learning_rate=0.0, optimizer=None, language="c++17",
                   has_aux=False):
    """A learner as one header without dependencies: step, loss, gradient, traces and update.

    `step_fn` is the loss of one step for arguments like `examples`; what it returns besides the
    loss (has_aux=True) becomes readable under `results`. Every step ends with plain descent, or
    with that of an `optimizer`, whose moments then live in the header. `language`: "c++17" or
    "c99". Returns the text, and writes it when `out` is given.

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 2), bt.D_RTRL, bt.zeros(3))
    >>> text = bt.export_learner(learner, lambda x, y: bt.mse(learner(x), y), bt.zeros(3),
    ...                          bt.zeros(2), learning_rate=0.1)
    >>> "namespace learner" in text
    True
    """
    _only_learners("export_learner", learner)
    text = _core._export_learner(learner._compiled(), step_fn, has_aux, name, list(arguments),
                                 list(results), learning_rate, optimizer, language,
                                 *examples)
    if out is not None:
        _core._write_file(out, text)
    return text


def train_synthetic_gradient(learner, inputs, *, chunk_size=1, loss_fn=None, optimizer=None,
                             lr=1e-2, epochs=1, reset=True):
    """Fits the predictor of a DNI learner on a sequence. The mean error of every epoch.

    `loss_fn` takes the outputs of one window, time in front; default: the sum of squares.

    >>> import braintrace_cpp as bt
    >>> learner = bt.compile(bt.nn.GRUCell(3, 4), bt.DNI, bt.zeros(3))
    >>> learner.synthesizer = bt.SyntheticGradient({0: (4, 1)})
    >>> errors = bt.train_synthetic_gradient(learner, bt.ones((6, 3)), epochs=5)
    >>> errors[-1] < errors[0]
    True
    """
    _only_learners("train_synthetic_gradient", learner)
    rule = optimizer or _core.Optimizer("SGD", lr=lr)
    return _core._train_synthetic_gradient(learner._compiled(), inputs, chunk_size, loss_fn, rule,
                                           epochs, reset)


def _only_learners(who, learner):
    if not isinstance(learner, ETraceAlgorithm):
        raise UserTypeError(f"{who}: takes a learner, got {type(learner).__name__}")


__all__ = ["TrainingRun", "export_learner", "train_synthetic_gradient"]
