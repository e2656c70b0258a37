#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The program `braintrace`: where its output goes: closed and full streams, files and their names.

Usage: cli_streams_test.py PROGRAM
"""
import json
import os
import resource
import subprocess
import sys
import unittest
from pathlib import Path

from cli_case import PROGRAM, SMALL, Case, run

QUICK = ["train", *SMALL, "--epochs", "1"]


def shell(redirection, *arguments):
    """The exit code with some streams closed or full; below 0 for a signal."""
    return subprocess.run(["/bin/sh", "-c", f'exec "$0" "$@" {redirection}', PROGRAM, *arguments],
                          capture_output=True, timeout=120).returncode


def small_files():
    """No file may grow beyond 1 kB, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


class Streams(Case):
    def test_messages_nobody_reads_change_no_exit_code(self):
        header = self.file("q.hpp")
        for redirection in ("2>&-", "2>/dev/full", ">&- 2>&-"):
            for code, arguments in ((2, ["train", "--batch", "0"]), (2, ["foo"]), (2, []),
                                    (0, ["export", "--hidden", "2", "--out", header]),
                                    (0, [*QUICK, "--quiet"])):
                with self.subTest(redirection, arguments=arguments):
                    self.assertEqual(shell(redirection, *arguments), code)

    def test_results_nobody_gets_are_exit_code_1(self):
        for redirection in (">&-", ">/dev/full", ">&- 2>&-"):
            for arguments in (["--help"], ["train", "--help"], ["--version"], QUICK,
                              [*QUICK, "--json"], ["plan", "--hidden", "2"]):
                with self.subTest(redirection, arguments=arguments):
                    self.assertEqual(shell(redirection, *arguments), 1)

    def test_a_file_never_takes_the_place_of_a_closed_stream(self):
        kept = self.file("run.safetensors")
        self.assertEqual(shell("2>&-", *QUICK, "--checkpoint", kept), 0)
        self.output("eval", "--checkpoint", kept, "--samples", "8")

    def test_a_full_disk_leaves_the_old_file(self):
        for command, name in ((["show", "--model", "gru", "--format", "html"], "page.html"),
                              (["export", "--hidden", "4"], "learner.hpp")):
            old = Path(self.file(name))
            old.write_text("old")
            done = subprocess.run([PROGRAM, *command, "--out", str(old)], text=True,
                                  capture_output=True, preexec_fn=small_files,
                                  restore_signals=False)
            self.assertEqual((done.returncode, old.read_text()), (1, "old"), done.stderr)
            self.assertIn(f"cannot write '{old}'", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["learner.hpp", "page.html"])

    def test_devices_and_links_are_written_to(self):
        self.assertEqual(self.output("show", "--model", "gru", "--out", "/dev/stdout")[:4], "====")
        self.output("show", "--model", "gru", "--out", "/dev/null")
        link, file = Path(self.file("link")), Path(self.file("file"))
        file.write_text("old")
        link.symlink_to(file)
        self.output("show", "--model", "gru", "--out", str(link))
        self.assertTrue(link.is_symlink())
        self.assertNotEqual(file.read_text(), "old")

    def test_names_that_are_no_text_end_no_run(self):
        folder = os.fsencode(self.folder)
        model, kept = folder + b"/n\xff.json", folder + b"/k\xff.st"
        Path(os.fsdecode(model)).write_text(
            '{"kind": "single_rnn", "n_in": 1, "n_rec": 5, "n_out": 1}')
        made = json.loads(self.output(*QUICK, "--model", model, "--checkpoint", kept, "--json"))
        self.assertTrue(made["checkpoint"].endswith("/k\ufffd.st"))
        again = json.loads(self.output("eval", "--checkpoint", kept, "--samples", "8", "--json"))
        self.assertTrue(again["model"].endswith("/n\ufffd.json"))
        again = self.output("train", "--resume", kept, "--epochs", "2", "--json")
        self.assertEqual(json.loads(again)["updates"], 10)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
