#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The command lines of README.md and docs/ run, and end with code 0.

Usage: docs_shell_test.py ROOT BUILD
A command is an indented line that starts with one of the words below, with or without "$ ", a
line of a ```sh block, or `braintrace ...` within a sentence. Those of a document run one after
the other in one folder that looks like the root of the tree: what a line writes is there for the
next one, and nothing is written into the tree. What an earlier document ran is not run again.
"""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
WORDS = (r"braintrace |build/|/usr/bin/python3|python3 |cp |export |cmake |ctest |ninja |pip |git "
         r"|sudo |\./|\.ci/|tools/|[A-Z_]+=\S+ ")
LINE = re.compile(rf"^    (?:\$ )?((?:{WORDS}).*)$", re.M)
INLINE = re.compile(r"`((?:build/release/bin/)?braintrace [a-z]+ -[^`]*)`")

# Not run here, and why.
LEFT_OUT = {
    "./test.sh": "runs this test",
    "./demo.sh": "a test of its own would take its two minutes",
    ".ci/run": "runs this test, under sanitizers",
    "tools/setup.sh": "installs packages",
    "cmake --preset": "configures and builds the whole tree",
    "cmake --install": "tests/install_test.cmake",
    "ninja -C build/dev": "needs a debug build",
    "ctest --test-dir": "runs this test",
}
# Files the reader is expected to have, and how they are made here.
PREPARED = {
    "my_model.json": 'echo \'{"kind": "single_rnn", "n_in": 3, "n_rec": 5, "n_out": 1}\'',
    "run.toml": "printf '[train]\\nepochs = 1\\n'",
}
SAVED = "braintrace train --epochs 1 --samples 64 --quiet --checkpoint run.safetensors"


def commands(path):
    text = path.read_text()
    found = [line for language, block in FENCE.findall(text) if language in ("sh", "bash")
             for line in block.splitlines() if line.strip() and not line.startswith("#")]
    plain = FENCE.sub("", text)
    return found + LINE.findall(plain) + INLINE.findall(" ".join(plain.split()))


def runs(line):
    is_sketch = "..." in line or re.search(r"\b[A-Z]{4,}\b(?!=)", line.split("#")[0])
    return not is_sketch and not any(line.startswith(start) for start in LEFT_OUT)


def plain(line):
    """The same for one command in two documents."""
    return line.split(" #")[0].replace("build/release/bin/", "").strip()


DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "build").mkdir()
        (self.folder / "build/release").symlink_to(BUILD)
        for name in ("docs", "examples", "tests", "tools"):
            (self.folder / name).symlink_to(ROOT / name)

    def run_lines(self, lines):
        prepared = [f"{command} > {name}" for name, command in PREPARED.items()]
        if any("run.safetensors" in line for line in lines):
            prepared.append(SAVED)
        script = "\n".join([f"PATH={BUILD}/bin:$PATH", "set -ex", *prepared, *lines])
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_commands_of_every_document_run(self):
        done = set()
        for path in DOCUMENTS:
            lines = [line for line in filter(runs, commands(path)) if plain(line) not in done]
            done |= {plain(line) for line in lines if "braintrace " in line}
            if lines:
                with self.subTest(path.name):
                    self.run_lines(lines)

    def test_commands_are_found(self):
        readme = commands(ROOT / "README.md")
        self.assertGreater(len(list(filter(runs, readme))), 8)
        self.assertIn("./test.sh     # installs packages (Debian 12), builds, runs every test",
                      readme)
        self.assertIn("braintrace train", commands(ROOT / "docs/cli.md"))

    def test_a_command_that_fails_is_noticed(self):
        with self.assertRaises(AssertionError):
            self.run_lines(["braintrace show --model no_such_model"])

    def test_nothing_is_left_out_that_is_not_there(self):
        lines = [line for path in DOCUMENTS for line in commands(path)]
        for start in LEFT_OUT:
            self.assertTrue(any(line.startswith(start) for line in lines), start)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
