# SPDX-License-Identifier: Apache-2.0
"""Everything the C++ headers offer to model writers can be reached from Python."""
import re
from pathlib import Path

import braintrace_cpp as bt
import pytest

LIBRARY = Path(__file__).parents[2] / "braintrace"
CLASS = re.compile(r"^(template <[^>]*>\n)?(?:class|struct) (\w+)(?: final)? : public \w+", re.M)
ALIAS = re.compile(r"^using (\w+) = \w+<[^;]*>;", re.M)
FUNCTION = re.compile(r"^Values? (\w+)\(", re.M)

# Bases without a step of their own.
BASES = {"Neuron", "Synapse", "NonlinearIF", "AdaptiveIF"}
# numpy's names, operators, and parts only rules write.
OTHER_NAMES = {"concat": "concatenate", "neg": "negative", "sub": "subtract", "mul": "multiply",
               "div": "divide", "pow": "power", "select": "where", "clamp": "clip",
               "slice": "__getitem__", "slice_axis": "__getitem__", "conv_general": "conv"}


def header_text(folder, name="*"):
    return "\n".join(p.read_text() for p in sorted((LIBRARY / folder).glob(f"{name}.h"))
                     if not p.stem.endswith("_impl"))


CLASSES = {name for is_template, name in CLASS.findall(header_text("nn")) if not is_template}
LAYERS = sorted((CLASSES | set(ALIAS.findall(header_text("nn")))) - BASES)
TASKS = sorted(re.findall(r"^Task (\w+)_task\(const \w+Options&", header_text("train", "tasks"),
                          re.M))
OPS = sorted({OTHER_NAMES.get(n, n) for n in FUNCTION.findall(header_text("ops", "ops"))})


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    assert isinstance(getattr(bt.nn, name), type)


@pytest.mark.parametrize("name", TASKS)
def test_tasks(name):
    assert getattr(bt.tasks, name)().batch(2).inputs.ndim == 3


@pytest.mark.parametrize("name", OPS)
def test_ops(name):
    assert callable(getattr(bt, name, None) or getattr(bt.Value, name, None))


def test_surrogates_and_models_by_name():
    for name in bt.nn.surrogate_names():
        assert getattr(bt.nn, name)()(bt.ones(2)).shape == (2,)
    assert "two_layer_gru" in bt.nn.model_kinds()


def test_the_headers_were_read():
    assert {"LIF", "GRUCell", "AlignPost", "Conv2d", "Gif", "LoRA"} <= set(LAYERS)
    assert {"copying", "text"} <= set(TASKS)
    assert {"tanh", "matmul", "concatenate"} <= set(OPS) and len(OPS) > 60
