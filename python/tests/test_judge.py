# SPDX-License-Identifier: Apache-2.0
"""The judge of the lessons finds every fault it is there for; so does the one of the twins."""
import subprocess
import sys
from pathlib import Path

import braintrace_cpp as bt
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples/python"))
import judge  # noqa: E402

GOOD = dict(loss=0.5, constant=1.0, rate=0.1, grads={"w": bt.ones(2)})


@pytest.mark.parametrize("change, fault", [
    ({}, None), ({"loss": 0.71}, "best constant"), ({"loss": float("nan")}, "best constant"),
    ({"rate": 0.0}, "fire"), ({"rate": 0.41}, "fire"),
    ({"grads": {"w": bt.zeros(2)}}, "no gradient for w"),
    ({"grads": {"w": bt.Value([float("nan"), 1.0])}}, "no gradient for w"),
    ({"hits": 51, "trials": 100}, "chance"), ({"hits": 66, "trials": 100}, None)])
def test_faults(change, fault):
    faults = list(judge.Outcome(**{**GOOD, **change}).faults())
    assert (len(faults) == 1 and fault in faults[0]) if fault else not faults


def test_a_network_that_learns_nothing_fails(capsys):
    def train(seed):
        return judge.Outcome(loss=1.0, constant=1.0)

    with pytest.raises(SystemExit) as left:
        judge.main(train)
    assert left.value.code == 1
    assert capsys.readouterr().out.count("FAILED") == len(judge.SEEDS)


@pytest.mark.parametrize("native, python, code", [
    ("same", "print('same')", 0), ("one", "print('other')", 1),
    ("same", "print('same'); raise SystemExit(3)", 1),
    ("same", "print('same'); open('file', 'w')", 1)])
def test_twins_that_differ_fail(tmp_path, native, python, code):
    program, script = tmp_path / "program", tmp_path / "script.py"
    program.write_text(f"#!/bin/sh\necho {native}\n")
    program.chmod(0o755)
    script.write_text(python)
    done = subprocess.run([sys.executable, "-B", ROOT / "tests/examples_twins.py", program, script],
                          capture_output=True)
    assert done.returncode == code
