# SPDX-License-Identifier: Apache-2.0
"""What learners refuse before anything runs."""
from collections.abc import Iterable

from ._core import ParamState
from ._errors import UserTypeError, UserValueError
from ._values import MultiStepData, SingleStepData


def check_modulator(who, modulator):
    if modulator is None or isinstance(modulator, (list, tuple, dict, str)):
        raise UserTypeError(f"{who}: a modulator is a number or an array, got "
                            f"{type(modulator).__name__}")


def check_step_fn(who, step_fn, modulators):
    if step_fn is None and modulators is not None:
        return
    if not callable(step_fn):
        raise UserTypeError(f"{who}: step_fn must be a function, got {step_fn!r}")


def check_sequences(who, sequences, chunk_size=None, steps=None):
    functions = [callable(s) for s in sequences]
    if steps is None and any(functions):
        raise UserTypeError(f"{who}: a function of the step needs steps=, their number")
    if steps is not None and functions != [True]:
        raise UserTypeError(f"{who}: steps= goes with one function t -> arguments")
    if isinstance(chunk_size, bool) or not (chunk_size is None or isinstance(chunk_size, int)):
        raise UserTypeError(f"{who}: chunk_size must be an integer, got {chunk_size!r}")
    if chunk_size is not None and chunk_size < 1:
        raise UserValueError(f"{who}: chunk_size must be >= 1, got {chunk_size}")
    for s in sequences:
        if isinstance(s, (SingleStepData, MultiStepData)):
            raise UserTypeError(f"{who}: sequences are plain arrays, got {type(s).__name__}")


def listed_weights(weights):
    """Parameters as given: one or several, by name, path or state."""
    if isinstance(weights, (str, ParamState)):
        return [weights]
    items = weights.values() if isinstance(weights, dict) else weights
    if not isinstance(items, Iterable):
        raise UserTypeError(f"weights must be names, paths or states, got {weights!r}")
    items = list(items)
    if not items:
        raise UserValueError("weights is empty; None takes all parameters")
    return items
