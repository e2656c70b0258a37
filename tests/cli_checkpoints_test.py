#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The program `braintrace`: checkpoints: stopping, going on, testing what was saved.

Usage: cli_checkpoints_test.py PROGRAM
"""
import json
import random
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from cli_case import PROGRAM, SMALL, Case, content


class Checkpoints(Case):
    def test_resumed_is_bit_exact(self):
        for more in ([], ["--model", "lif", "--algorithm", "pp_prop", "--update", "step"]):
            once, twice = self.file("once"), self.file("twice")
            for f in (once, twice):
                Path(f).unlink(missing_ok=True)
            self.output("train", *SMALL, *more, "--epochs", "4", "--checkpoint", once, "--quiet")
            self.output("train", *SMALL, *more, "--epochs", "2", "--checkpoint", twice, "--quiet")
            self.assertNotEqual(content(once)[1], content(twice)[1])
            self.output("train", "--resume", twice, "--epochs", "4", "--quiet")
            self.assertEqual(content(once), content(twice))

    def test_ctrl_c_saves_and_ends_well(self):
        started = subprocess.Popen([PROGRAM, "train", *SMALL, "--epochs", "100000"],
                                   cwd=self.folder, text=True, stdout=subprocess.PIPE)
        while "40 " not in started.stdout.readline():
            pass
        started.send_signal(signal.SIGINT)
        text, _ = started.communicate(timeout=60)
        self.assertEqual(started.returncode, 0)
        self.assertIn("go on with: braintrace train --resume interrupted.safetensors", text)
        kept = self.file("interrupted.safetensors")
        done = content(kept)[2]["step"]
        epochs = done // 5 + 1
        self.output("train", "--resume", kept, "--epochs", str(epochs), "--quiet")
        self.output("train", *SMALL, "--epochs", str(epochs), "--checkpoint",
                    self.file("whole"), "--quiet")
        # An interrupted run has one evaluation less or more, never another weight.
        self.assertEqual(content(kept)[:2], content(self.file("whole"))[:2])

    def test_killed_at_any_moment_leaves_a_whole_file(self):
        file = self.file("run.safetensors")
        random.seed(3)
        steps = []
        for _ in range(8):
            started = subprocess.Popen([PROGRAM, "train", *SMALL, "--epochs", "100000",
                                        "--checkpoint", file], stdout=subprocess.DEVNULL)
            deadline = time.time() + 60
            while not Path(file).exists() and time.time() < deadline:
                time.sleep(0.005)
            time.sleep(random.random() * 0.1)
            started.kill()
            started.wait()
            made = json.loads(self.output("eval", "--checkpoint", file, "--samples", "8",
                                          "--json"))
            steps.append(made["updates"])
            self.assertEqual(made["updates"] % 5, 0)
        self.assertGreater(max(steps), 0)

    def test_eval_agrees_with_the_last_test_of_the_run(self):
        file = self.file("run.safetensors")
        made = self.result("train", *SMALL, "--task", "digits", "--epochs", "2",
                           "--checkpoint", file)
        again = self.result("eval", "--checkpoint", file, "--samples", "32")
        self.assertAlmostEqual(again["loss"], made["test_loss"], places=6)
        self.assertEqual(again["accuracy"], made["evaluations"][-1]["accuracy"])
        self.assertRegex(self.output("eval", "--checkpoint", file),
                         r"gru on digits after 10 batches, 1024 test samples\n  loss ")

    def test_refusals(self):
        file = self.file("run.safetensors")
        self.output("train", *SMALL, "--epochs", "1", "--checkpoint", file, "--quiet")
        self.refuses(2, "there is no checkpoint", "eval", "--checkpoint", "absent")
        config = Path(self.file("run.toml"))
        config.write_text('[train]\ntask = "copying"\n')
        for command in (["eval", "--checkpoint"], ["train", "--resume"], ["export", "--checkpoint"]):
            self.refuses(2, "run.toml: no safetensors file, as checkpoints are", *command,
                         str(config))
        self.refuses(2, "--task is a part of the run", "train", "--resume", file,
                     "--task", "text")
        self.refuses(2, "give more epochs", "train", "--resume", file, "--epochs", "1",
                     "--samples", "8", "--quiet")
        damaged = bytearray(Path(file).read_bytes())
        damaged[-1] ^= 1
        Path(file).write_bytes(damaged)
        for command in (["eval", "--checkpoint"], ["train", "--resume"]):
            self.refuses(2, "hash", *command, file)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
