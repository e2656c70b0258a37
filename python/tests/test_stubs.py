# SPDX-License-Identifier: Apache-2.0
"""Type stubs: as the program writes them, and accepted by mypy together with user code."""
import os
import subprocess
import sys
from pathlib import Path

import braintrace_cpp
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = Path(braintrace_cpp.__file__).parent

USER_CODE = '''
import braintrace_cpp as bt


class Net(bt.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = bt.nn.GRUCell(3, 4)
        self.lif = bt.nn.LIF(4, tau=5.0)

    def update(self, x: bt.Value) -> bt.Value:
        return bt.tanh(self.rnn(x)) + 1.0


learner = bt.compile(Net(), bt.D_RTRL, bt.zeros(3))
optimizer = bt.Adam(lr=1e-3, clip_norm=1.0)
graph = bt.compile_etrace_graph(Net(), bt.zeros(3))
number: float = float(bt.mse(bt.ones(3), bt.zeros(3)))
'''


def mypy(*arguments):
    """With the package on MYPYPATH only: mypy is silent about errors inside installed packages,
    and takes what PYTHONPATH names for installed."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--no-incremental", *map(str, arguments)], text=True,
        capture_output=True, env={**environment, "MYPYPATH": str(PACKAGE.parent)})


def test_the_stored_stubs_are_what_the_program_writes(tmp_path):
    subprocess.run([sys.executable, str(ROOT / "tools/make_stubs.py"), str(tmp_path)], check=True)
    for name in ("_core.pyi", "nn.pyi", "_optimizers.pyi"):
        stored = (ROOT / "python/braintrace_cpp" / name).read_text()
        assert stored == (tmp_path / name).read_text(), f"run tools/make_stubs.py for {name}"


def test_mypy_accepts_the_package():
    done = mypy("-p", "braintrace_cpp")
    assert done.returncode == 0, done.stdout


def test_mypy_accepts_code_that_uses_the_package(tmp_path):
    user = tmp_path / "user.py"
    user.write_text(USER_CODE)
    done = mypy(user)
    assert done.returncode == 0, done.stdout


MISTAKES = {
    "bt.nn.LIF(4, tao=5.0)": "tao", "bt.tanh(1.0, 2.0)": "tanh", "bt.nothing": "nothing",
    "bt.Adam(learning_rate=3)": "learning_rate", "bt.SGD(lr='x')": "lr",
    "bt.compile(bt.nn.GRUCell(3, 4), 'd_rtrl', bt.zeros(3)).nope()": "nope",
    "bt.compile(bt.nn.GRUCell(3, 4), 3, bt.zeros(3))": "compile",
    "bt.D_RTRL(bt.nn.GRUCell(3, 4)).step_grad(bt.zeros(3))": "loss",
}


def test_mypy_finds_mistakes(tmp_path):
    user = tmp_path / "user.py"
    user.write_text("import braintrace_cpp as bt\n" + "\n".join(MISTAKES) + "\n")
    found = [line for line in mypy(user).stdout.splitlines() if ": error: " in line]
    for number, (line, word) in enumerate(MISTAKES.items(), 2):
        assert any(f"user.py:{number}: " in f and word in f for f in found), (line, found)
