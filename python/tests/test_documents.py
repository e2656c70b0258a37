# SPDX-License-Identifier: Apache-2.0
"""The Python blocks of the documents and the example programs run."""
import json
import re
import subprocess
import sys
from pathlib import Path

import braintrace_cpp as bt
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
DOCUMENTS = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
             if BLOCK.search(p.read_text())]
# Numbered ones run beside their C++ twins (tests/examples_twins.py).
EXAMPLES = sorted((ROOT / "examples/python").glob("[a-z]*_*.py"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.stem)
def test_blocks_of_a_document_run_one_after_the_other(path):
    names = {}
    for block in BLOCK.findall(path.read_text()):
        exec(compile(block, str(path), "exec"), names)


QUICK_START = ROOT / "docs/quick_start.md"
# The cells its last step names.
OTHER_CELLS = re.findall(r"`bt\.nn\.(\w+)`", QUICK_START.read_text().split("**6.")[1])


@pytest.mark.parametrize("cell", [c for c in OTHER_CELLS if c != "GRUCell"])
def test_the_quick_start_holds_for_the_cells_it_names(cell):
    names = {}
    for block in BLOCK.findall(QUICK_START.read_text()):
        exec(block.replace("bt.nn.GRUCell", f"bt.nn.{cell}"), names)
    assert type(names["model"].rnn).__name__ == cell


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(path):
    done = subprocess.run([sys.executable, str(path)], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    if path.stem == "seed_004":
        assert "Number of hidden groups: 2" in done.stdout
        assert "Paths: [('rnn', 'h')]" in done.stdout
        assert "('conv', 'weight')" in done.stdout


KINDS = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$",
                        (ROOT / "docs/nn.md").read_text().split("## Kinds of models")[1], re.M))
VALUES = {"tau_syn": 3.0, "leak": 0.5, "n_rec": 6, "dims": 1, "layer": "Linear"}
CONSTANTS = {"tau_I2_ms": np.full(6, 50.0), "csr_dense_mask": np.eye(6)}


def described(kind):
    """A model of the kind with every option its row has."""
    model = {"kind": kind, "constants": {}}
    for name, default in re.findall(r"`([\w.]+)`(?: = ([^,|]+))?", KINDS[kind]):
        if name.startswith("constants."):
            constant = name.split(".")[1]
            a = CONSTANTS.get(constant, np.ones(1))
            model["constants"][constant] = {"shape": a.shape, "data": a.ravel().tolist()}
        elif default.strip() in ("", "..."):
            model[name] = VALUES.get(name, 4)
        else:
            model[name] = json.loads(default if re.match(r"[-\d.]|true|false", default)
                                     else f'"{default.strip()}"')
    if kind == "linear_rnn":
        del model["groups"]  # of another layer
    return model


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"sequential", "layer"}))
def test_every_kind_takes_the_options_of_its_row(kind):
    bt.nn.init_all_states(bt.nn.build_model(json.dumps(described(kind))))


def test_every_kind_has_a_row_with_the_options_recorded_runs_use():
    assert set(KINDS) == set(bt.nn.model_kinds())
    for path in sorted((ROOT / "tests/goldens").glob("*.json")):
        with path.open() as file:
            model = json.load(file).get("model", {})
        for name in model.keys() - {"kind", "dt_ms", "constants"}:
            assert f"`{name}`" in KINDS[model["kind"]], (path.name, name)


def test_the_documents_and_examples_are_found():
    assert ROOT / "docs/python.md" in DOCUMENTS
    assert "MiniGRU" in OTHER_CELLS
    assert {"seed_004", "quick_start"} <= {p.stem for p in EXAMPLES}
