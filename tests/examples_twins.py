#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs an example in C++ and in Python: both must pass, and print the same.

Usage: examples_twins.py PROGRAM SCRIPT. Without the Python package only the program runs.
"""
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path


def run(command, folder):
    """What a twin prints; it runs in a folder of its own, for the files it writes."""
    done = subprocess.run(command, text=True, capture_output=True, cwd=folder)
    print(done.stdout, done.stderr, sep="", end="", flush=True)
    if done.returncode:
        sys.exit(f"{command[-1]} left with {done.returncode}")
    return done.stdout.splitlines()


def files(folder):
    return {p.name: p.read_text() for p in sorted(Path(folder).iterdir())}


def main():
    program, script = (str(Path(a).resolve()) for a in sys.argv[1:])
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        native = run([program], one)
        if importlib.util.find_spec("braintrace_cpp") is None:
            return
        python = run([sys.executable, "-B", script], other)
        if native != python or not native:
            sys.exit("the twins print different things")
        if files(one) != files(other):
            sys.exit("the twins write different files")


if __name__ == "__main__":
    main()
