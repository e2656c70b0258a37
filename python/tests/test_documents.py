# SPDX-License-Identifier: Apache-2.0
"""The Python blocks of the documents and the example programs run."""
import re
import subprocess
import sys
from pathlib import Path

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


def test_the_documents_and_examples_are_found():
    assert ROOT / "docs/python.md" in DOCUMENTS
    assert "MiniGRU" in OTHER_CELLS
    assert {"seed_004", "quick_start"} <= {p.stem for p in EXAMPLES}
