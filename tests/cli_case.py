# SPDX-License-Identifier: Apache-2.0
"""What the tests of the program `braintrace` share: running it, and reading its checkpoints."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.path.abspath(sys.argv[1])
SMALL = ["--hidden", "8", "--batch", "8", "--samples", "40", "--test-samples", "32"]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], text=True, capture_output=True, timeout=120)


def content(file):
    """Arrays and manifest of a checkpoint; clocks left out."""
    data = Path(file).read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    manifest = json.loads(header.pop("__metadata__")["braintrace"])
    manifest["config"]["log"].pop("seconds")
    manifest["config"]["run"].pop("epochs")
    return header, data[8 + length:], manifest


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name):
        return str(self.folder / name)

    def output(self, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def result(self, *arguments):
        return json.loads(self.output(*arguments, "--json"))

    def refuses(self, code, message, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, arguments)
        self.assertTrue(done.stderr.startswith("braintrace: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(message, done.stderr)
