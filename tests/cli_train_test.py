#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The program `braintrace`: training: options, progress, refusals.

Usage: cli_train_test.py PROGRAM
"""
import json
import os
import pty
import subprocess
import sys
import termios
import unittest

from cli_case import PROGRAM, SMALL, Case, run


class Train(Case):
    def test_without_options_it_learns_and_says_so(self):
        text = self.output("train")
        self.assertIn("It has learned: better than any constant.", text)
        self.assertRegex(text, r"D_RTRL: [\d.]+ kB of traces for 32 samples")
        self.assertRegex(text, r"[\d.]+[kMG]? steps per second")
        self.assertNotIn("\x1b", text)  # no colours or moving lines in a file

    def test_json_holds_the_curves(self):
        made = self.result("train", *SMALL, "--epochs", "2")
        self.assertEqual([p["update"] for p in made["training"]], list(range(1, 11)))
        self.assertEqual([p["update"] for p in made["evaluations"]], [0, 5, 10])
        self.assertEqual((made["updates"], made["finished"]), (10, True))
        self.assertGreater(made["steps_per_second"], 0)

    def test_the_verdict_is_honest(self):
        made = self.result("train", *SMALL, "--task", "delayed_match", "--epochs", "1")
        self.assertFalse(made["beats_constant"])
        self.assertIn("Not better than a constant yet",
                      self.output("train", *SMALL, "--task", "delayed_match", "--epochs", "1"))

    def test_a_task_brings_what_learns_it(self):
        made = self.result("train", "--task", "delayed_match")
        self.assertEqual((made["run"]["model"], made["algorithm"]), ("lif", "pp_prop"))
        self.assertTrue(made["beats_constant"])
        self.assertTrue(0.01 < made["evaluations"][-1]["firing_rate"] < 0.4)
        own = self.result("train", *SMALL, "--task", "delayed_match", "--model", "gru",
                          "--epochs", "1")
        self.assertEqual((own["run"]["model"], own["algorithm"]), ("gru", "D_RTRL"))

    def test_options_of_a_task(self):
        kept = self.file("run.safetensors")
        options = ["--task", "copying", "--task-option", "delay=3", "--task-option", "length=2"]
        self.output("train", *SMALL, *options, "--epochs", "1", "--checkpoint", kept, "--quiet")
        again = self.result("train", "--resume", kept, "--epochs", "2")
        self.assertEqual(again["run"]["task_options"], ["delay=3", "length=2"])
        self.assertIn("copying: 7 steps", self.output("train", *SMALL, *options, "--epochs", "1"))
        self.refuses(2, "copying: no option 'dealy'; there are symbols, length, delay", "train",
                     "--task", "copying", "--task-option", "dealy=3")
        self.refuses(2, "needs name=value", "train", "--task-option", "delay")

    def test_spiking_nets_report_their_rate(self):
        made = self.result("train", *SMALL, "--model", "lif", "--algorithm", "pp_prop",
                           "--task", "digits", "--epochs", "1", "--update", "step")
        self.assertIn("firing_rate", made["evaluations"][-1])
        self.assertIn("accuracy", made["evaluations"][-1])

    def test_seeds_and_rules_change_the_run(self):
        def loss(*more):
            return self.result("train", *SMALL, "--epochs", "1", *more)["test_loss"]
        first = loss()
        self.assertEqual(first, loss())
        for more in (["--seed", "1"], ["--algorithm", "pp_prop"], ["--optimizer", "sgd"],
                     ["--set", "weight_paths=local"], ["--model", "lstm"], ["--layers", "2"],
                     ["--lr", "0.02"], ["--clip-norm", "0.001"], ["--update", "step"]):
            self.assertNotEqual(first, loss(*more), more)

    def test_auto_picks_a_rule_that_fits(self):
        made = self.result("train", *SMALL, "--epochs", "1", "--algorithm", "auto")
        self.assertEqual(made["algorithm"], "D_RTRL")
        made = self.result("train", *SMALL, "--epochs", "1", "--algorithm", "auto",
                           "--model", "rnn", "--memory", "2kB")
        self.assertNotEqual(made["algorithm"], "D_RTRL")

    def test_options_from_a_file(self):
        file = self.folder / "run.toml"
        file.write_text('[train]\nhidden = 4\ntask = "pattern"\nepochs = 1\nsamples = 32\n')
        made = self.result("train", "--config", str(file), "--batch", "16")
        self.assertEqual((made["run"]["hidden"], made["run"]["task"]), (4, "pattern"))
        self.assertEqual((made["run"]["batch"], made["updates"]), (16, 2))
        file.write_text("[train]\nunits = 4\n")
        self.refuses(2, "'units' under [train]", "train", "--config", str(file))
        self.refuses(2, "absent.toml", "train", "--config", "absent.toml")

    def test_files_of_any_editor(self):
        file = self.folder / "run.toml"
        for start, end in ((b"", b"\r\n"), (b"\xef\xbb\xbf", b"\n"), (b"\xef\xbb\xbf", b"\r\n")):
            file.write_bytes(start + end.join((b"[train]", b"# sizes", b"", b"hidden = 4",
                                               b'task = "pattern"', b"epochs = 1", b"")))
            made = self.result("train", "--config", str(file), "--samples", "32")
            self.assertEqual((made["run"]["hidden"], made["run"]["task"]), (4, "pattern"))

    def test_models_from_files(self):
        file = self.folder / "net.json"
        file.write_text('{"kind": "single_rnn", "n_in": 1, "n_rec": 5, "n_out": 1}')
        self.assertEqual(self.result("train", *SMALL, "--epochs", "1", "--model",
                                     str(file))["run"]["model"], str(file))
        file.write_text('{"kind": "single_rnn", "n_in": 7, "n_rec": 5, "n_out": 1}')
        self.refuses(2, "", "train", *SMALL, "--model", str(file))

    def test_a_model_as_json_text(self):
        text = '{"kind": "single_rnn", "n_in": 1, "n_rec": 5, "n_out": 1}'
        self.assertIn("model      single_rnn: ",
                      self.output("train", *SMALL, "--epochs", "1", "--model", text))
        kept = self.file("run.safetensors")
        self.output("train", *SMALL, "--epochs", "1", "--model", text, "--checkpoint", kept,
                    "--quiet")
        self.assertIn("single_rnn on integrator", self.output("eval", "--checkpoint", kept))
        self.refuses(2, "--model is no JSON object: '{\"kind\"'", "train", "--model", '{"kind"')

    def test_mistakes_are_named(self):
        for message, arguments in (
                ("--hidden is given 2 times", ["train", "--hidden", "2", "--hidden", "3"]),
                ("--seed: must be a whole number from 0", ["train", "--seed", "-1"]),
                ("--seed: must be a whole number from 0", ["train", "--seed", "9" * 30]),
                ("--checkpoint: must be the name of a file", ["train", "--checkpoint", ""]),
                ("--report: must be the name of a file", ["train", "--report", ""]),
                ("--batch: must be a whole number from 1", ["plan", "--batch", "0"]),
                ("give a command: show, train", ["--json"]),
                ("give a command: show, train", []),
                ("--lr: must be a positive number, got 'x'", ["train", "--lr", "x"]),
                ("--hidden: must be a whole number from 1", ["train", "--hidden", "0"]),
                ("--hidden: must be a whole number from 1 to 2147483647, got '2147483648'",
                 ["train", "--hidden", "2147483648"]),
                ("--layers: must be a whole number from 1 to 1000, got '100000'",
                 ["train", "--layers", "100000", "--hidden", "1"]),
                ("--layers: must be a whole number from 1 to 1000, got '100000'",
                 ["plan", "--layers", "100000"]),
                ("--hidden 100000 --layers 1000 needs about",
                 ["train", "--hidden", "100000", "--layers", "1000"]),
                ("--set gives 'mixing' more than once: 'mixing=sum' and 'mixing=sum'",
                 ["train", "--set", "mixing=sum", "--set", "mixing=sum"]),
                ("--task-option gives 'steps' more than once: 'steps=3' and 'steps=4'",
                 ["train", "--task-option", "steps=3", "--task-option", "steps=4"]),
                ("unknown model 'gr'; known: gru, ", ["train", "--model", "gr"])):
            self.refuses(2, message, *arguments)

    def test_a_file_that_is_no_config_is_refused_by_line(self):
        for text, message in (("{\n", "line 1 of '"), ("[train]\nhidden = 4\n{}\n", "line 3 of"),
                              ("[train]\nhiden = 4\n", "'hiden' under [train]"),
                              ("[teach]\nhidden = 4\n", "has [teach], which is no command"),
                              ("hidden = 4\n", "'hidden' outside of a command")):
            file = self.folder / "run.toml"
            file.write_text(text)
            self.refuses(2, message, "train", *SMALL, "--epochs", "1", "--config", str(file))

    def test_places_to_write_to_are_tried_before_the_first_batch(self):
        for option, file, reason in (
                ("--report", "/nonexistent/x.html", "No such file or directory"),
                ("--checkpoint", "/nonexistent/x.st", "No such file or directory"),
                ("--report", str(self.folder), "it is a folder")):
            done = run("train", *SMALL, "--epochs", "100000", option, file)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(f"cannot write '{file}': {reason}", done.stderr)

    def test_sizes_the_machine_cannot_hold_are_refused_by_name(self):
        for option, size in (("--batch", "100000000"), ("--hidden", "10000000")):
            self.refuses(2, f"{option} {size} needs about", "train", option, size)

    def test_a_bar_fits_a_narrow_terminal(self):
        text = self.bar_in_a_terminal(columns=30)
        pieces = text.split(b"\r\x1b[K")
        self.assertGreater(len(pieces), 2)
        self.assertEqual(max(map(len, pieces)), 29)

    def test_a_bar_in_a_terminal(self):
        text = self.bar_in_a_terminal(columns=120)
        self.assertIn(b"batch ", text)
        self.assertIn(b"100 %", text)
        self.assertIn(b"steps/s", text)

    def bar_in_a_terminal(self, columns):
        try:
            leader, follower = pty.openpty()
        except OSError as e:  # a bare root without /dev/pts
            self.skipTest(f"no terminal to be had here: {e}")
        termios.tcsetwinsize(follower, (24, columns))
        done = subprocess.Popen([PROGRAM, "train", *SMALL, "--epochs", "3"], stderr=follower,
                                stdout=subprocess.PIPE)
        os.close(follower)
        text = b""
        try:
            while piece := os.read(leader, 4096):
                text += piece
        except OSError:  # the other end is closed
            pass
        os.close(leader)
        done.communicate(timeout=60)
        return text

    def test_refusals(self):
        for code, message, arguments in (
                (2, "unknown model 'nope'", ["--model", "nope"]),
                (2, "no algorithm 'nope'", ["--algorithm", "nope"]),
                (2, "--task", ["--task", "nope"]),
                (2, "--lr", ["--lr", "-1"]),
                (2, "--set needs name=value", ["--set", "x"]),
                (2, "there are bias_correction, history, ", ["--set", "foo=1"]),
                (2, "give options of a kind as JSON, --model '{", ["--model", "grouped_rnn"]),
                (2, "'branching' has no readout (n_out): its output is its state; task "
                    "'integrator' gives 1 input and wants 1 output per step: take a kind with "
                    "n_out (docs/nn.md#kinds-of-models), or as many units as outputs, --model "
                    "'{\"kind\":\"branching\",\"n_in\":1,\"n_rec\":1}'", ["--model", "branching"]),
                (2, "'tied' takes no n_in and n_out: input, state and output have one size",
                 ["--model", "tied"]),
                (2, "got [1,1] (at models_op_level.cpp", ["--model", '{"kind": "tied", "n_rec": 4}']),
                (2, "task 'integrator' gives 1 input and wants 1 output per step, the model gives "
                    "[1,4] for one sample",
                 ["--model", '{"kind": "tanh_rnn", "n_in": 1, "n_rec": 4}']),
                (2, "wants 10 outputs per step, the model gives [1,4]",
                 ["--task", "digits", "--model", '{"kind": "tanh_rnn", "n_in": 8, "n_rec": 4}']),
                (2, "'gif_net' has one layer", ["--model", "gif_net", "--layers", "2"]),
                (2, "ThreeFactor needs a modulator", ["--algorithm", "three_factor"]),
                (2, "no rule fits into 1 B", ["--algorithm", "auto", "--memory", "1"]),
                (1, "smaller learning rate", ["--model", "rnn", "--lr", "1e30", "--clip-norm",
                                              "0", "--optimizer", "sgd", "--quiet"])):
            with self.subTest(message):
                self.refuses(code, message, "train", *SMALL, *arguments)


class Diverged(Case):
    WILD = ["train", "--lr", "1e12", "--clip-norm", "0", "--optimizer", "sgd", "--samples", "64"]

    def test_a_test_loss_that_is_no_number_is_said_and_kept(self):
        kept = self.file("wild.safetensors")
        done = run(*self.WILD, "--epochs", "1", "--checkpoint", kept)
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning: the run has diverged", done.stderr)
        self.assertNotIn("Not better than a constant yet", done.stdout)
        made = self.result(*self.WILD, "--epochs", "1")
        self.assertEqual((made["diverged"], made["test_loss"]), (True, None))
        self.assertIn("after 2 batches", self.output("eval", "--checkpoint", kept))
        self.refuses(1, "smaller learning rate", "train", "--resume", kept, "--epochs", "2",
                     "--quiet")

    def test_a_loss_that_is_no_number_ends_the_run(self):
        done = run(*self.WILD, "--epochs", "2", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the loss of batch 3 is infinite", done.stderr)
        made = json.loads(done.stdout)
        self.assertEqual((made["diverged"], made["finished"]), (True, False))

    def test_a_run_that_learns_has_not_diverged(self):
        self.assertFalse(self.result("train", *SMALL, "--epochs", "1")["diverged"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
