# SPDX-License-Identifier: Apache-2.0
"""Every docstring: public functions and classes have one, and their examples are true."""
import doctest
import inspect

import braintrace_cpp as bt
import pytest
from braintrace_cpp import (_compile, _core, _learner, _optimizers, _training, brainstate, braintools, jax,
                            nn, numpy)

MODULES = [bt, nn, _compile, _learner, _optimizers, _training, numpy, brainstate, braintools,
           jax]


def public_objects():
    for place in (_core, _core.init, _core.schedule, _core.tasks, _core.data, *MODULES):
        for name, item in vars(place).items():
            own = getattr(item, "__module__", "") or ""
            is_ours = own.startswith("braintrace_cpp") or inspect.isbuiltin(item)
            if place.__name__.startswith("braintrace_cpp._") and place is not _core:
                is_ours = is_ours and own.startswith(place.__name__)  # not what it imports
            if not name.startswith("_") and callable(item) and is_ours:
                yield f"{place.__name__}.{name}", item


OBJECTS = dict(public_objects())


def run(name, text, names=()):
    parser, out = doctest.DocTestParser(), []
    test = parser.get_doctest(text, {**vars(bt), **dict(names), "bt": bt}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=out.append)
    assert not runner.failures, "".join(out)
    return runner.tries


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_examples_are_true(name):
    item = OBJECTS[name]
    home = inspect.getmodule(item)
    run(name, inspect.getdoc(item) or "", vars(home) if home else ())


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_modules_are_described(module):
    assert run(module.__name__, module.__doc__) > 0 or module in (
        nn, _compile, _learner, _optimizers, _training)


def test_all_of_what_is_public_shows_an_example():
    assert len(OBJECTS) > 700
    assert [n for n, o in OBJECTS.items() if ">>>" not in (inspect.getdoc(o) or "")] == []
