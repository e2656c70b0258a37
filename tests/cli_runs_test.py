#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The program `braintrace`: training, testing, planning and comparing.

Usage: cli_runs_test.py PROGRAM
"""
import json
import os
import pty
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

GOLDENS = Path(__file__).parent / "goldens"
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


class Train(Case):
    def test_without_options_it_learns_and_says_so(self):
        text = self.output("train")
        self.assertIn("It has learned: better than any constant.", text)
        self.assertRegex(text, r"D_RTRL: [\d.]+ kB of traces for 32 samples")
        self.assertRegex(text, r"[\d.]+k? steps per second")
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

    def test_models_from_files(self):
        file = self.folder / "net.json"
        file.write_text('{"kind": "single_rnn", "n_in": 1, "n_rec": 5, "n_out": 1}')
        self.assertEqual(self.result("train", *SMALL, "--epochs", "1", "--model",
                                     str(file))["run"]["model"], str(file))
        file.write_text('{"kind": "single_rnn", "n_in": 7, "n_rec": 5, "n_out": 1}')
        self.refuses(2, "", "train", *SMALL, "--model", str(file))

    def test_mistakes_are_named(self):
        for message, arguments in (
                ("give a command: show, train", []),
                ("--lr: must be a positive number, got 'x'", ["train", "--lr", "x"]),
                ("--hidden: must be a whole number from 1", ["train", "--hidden", "0"]),
                ("unknown model 'gr'; known: gru, ", ["train", "--model", "gr"])):
            self.refuses(2, message, *arguments)

    def test_a_file_that_is_no_config_is_refused_by_line(self):
        for text, message in (("{\n", "line 1 of '"), ("[train]\nhidden = 4\n{}\n", "line 3 of"),
                              ("[train]\nhiden = 4\n", "'hiden' under [train]"),
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
        leader, follower = pty.openpty()
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
                (2, "'lif' has one layer", ["--model", "lif", "--layers", "2"]),
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
        self.refuses(2, "--task is a part of the run", "train", "--resume", file,
                     "--task", "text")
        self.refuses(2, "give more epochs", "train", "--resume", file, "--epochs", "1",
                     "--samples", "8", "--quiet")
        damaged = bytearray(Path(file).read_bytes())
        damaged[-1] ^= 1
        Path(file).write_bytes(damaged)
        for command in (["eval", "--checkpoint"], ["train", "--resume"]):
            self.refuses(2, "hash", *command, file)


class Plan(Case):
    def test_every_rule_has_a_line(self):
        text = self.output("plan", "--model", "gru", "--hidden", "16", "--batch", "4")
        for rule in ("d_rtrl", "pp_prop", "eprop", "snap", "uoro", "rtrl", "hybrid", "bptt"):
            self.assertRegex(text, rf"\n  {rule} .* [\d.]+ k?M?B\n")

    def test_items_add_up(self):
        made = self.result("plan", "--model", "rnn", "--hidden", "8", "--n-in", "3",
                           "--batch", "2", "--algorithm", "d_rtrl")
        self.assertEqual(made["bytes"], sum(i["bytes"] for i in made["items"]))
        # eps of (3 + 8) x 8 weights and 8 biases, for 2 samples, 4 bytes each
        self.assertEqual(made["bytes"], 2 * 4 * (11 * 8 + 8))

    def test_only_bptt_grows_with_the_steps(self):
        def bytes_at(steps):
            rules = self.result("plan", "--hidden", "8", "--steps", steps)["rules"]
            return {r["name"]: r["bytes"] for r in rules}
        short, long = bytes_at("10"), bytes_at("1000")
        self.assertEqual({n for n in short if short[n] != long[n]}, {"bptt"})
        self.assertEqual(long["bptt"], 100 * short["bptt"])

    def test_auto_keeps_to_the_budget(self):
        made = self.result("plan", "--model", "lif", "--hidden", "100", "--batch", "8",
                           "--algorithm", "auto", "--memory", "100kB")
        self.assertLessEqual(made["bytes"], 100_000)
        self.assertGreater(made["considered"][0]["bytes"], 100_000)
        self.refuses(2, "no rule fits into 10 B", "plan", "--algorithm", "auto",
                     "--memory", "10")
        self.refuses(2, "parse_bytes", "plan", "--algorithm", "auto", "--memory", "lots")

    def test_nothing_is_allocated_for_a_plan(self):
        made = self.result("plan", "--model", "lif", "--hidden", "2000", "--batch", "1000",
                           "--algorithm", "d_rtrl")
        self.assertGreater(made["bytes"], 8e9)


    def test_kinds_are_explained(self):
        text = self.output("plan", "--model", "gru", "--hidden", "8")
        for kind in ("bwg", "x", "df", "s_tilde", "theta_tilde", "dense", "window"):
            self.assertRegex(text, rf"\n  {kind} +[a-z].*[a-z]\n")
        self.assertNotIn("s_tilde", self.output("plan", "--hidden", "8", "--algorithm", "d_rtrl"))

    def test_a_task_brings_its_model(self):
        text = self.output("plan", "--task", "delayed_match")
        self.assertTrue(text.startswith("lif: "), text)
        own = self.output("plan", "--task", "delayed_match", "--model", "gru")
        self.assertTrue(own.startswith("gru: "), own)

    def test_arguments_of_rules(self):
        def size(n):
            return self.result("plan", "--model", "rnn", "--hidden", "8", "--algorithm", "snap",
                               "--snap-n", n, "--set", "mixing=sum")["bytes"]
        self.assertGreater(size("2"), size("1"))
        self.output("plan", "--algorithm", "pp_prop", "--decay", "0.5")


class Compare(Case):
    def test_table_picture_and_numbers(self):
        picture = self.file("rules.svg")
        arguments = ["compare", *SMALL[:4], "--updates", "20", "--algorithms",
                     "d_rtrl,pp_prop,bptt", "--out", picture]
        made = self.result(*arguments)
        rules = {r["algorithm"]: r for r in made["rules"]}
        self.assertEqual(list(rules), ["d_rtrl", "pp_prop", "bptt"])
        self.assertAlmostEqual(rules["bptt"]["cosine_to_bptt"]["last"], 1, places=5)
        self.assertGreater(rules["d_rtrl"]["cosine_to_bptt"]["first"], 0.5)
        self.assertLess(rules["d_rtrl"]["cosine_to_bptt"]["first"], 0.9999)
        self.assertEqual(len(rules["pp_prop"]["losses"]), 20)
        self.assertLess(rules["pp_prop"]["bytes"], rules["d_rtrl"]["bytes"])
        names = [t.text for t in ElementTree.parse(picture).iter() if t.tag.endswith("text")]
        for name in rules:
            self.assertIn(name, names)
        self.assertRegex(self.output(*arguments), r"rule +test loss +of constant +cosine")

    def test_refusals(self):
        self.refuses(2, "no algorithm 'nope'", "compare", *SMALL[:4], "--updates", "1",
                     "--algorithms", "nope")
        self.refuses(1, "cannot write", "compare", *SMALL[:4], "--updates", "1",
                     "--algorithms", "bptt", "--out", "/nonexistent/x.svg")


class Verify(Case):
    def test_exact_parameters_are_exact(self):
        made = self.result("verify", *SMALL[:4], "--model", "rnn")
        verdicts = {p["parameter"]: p for p in made["parameters"]}
        self.assertTrue(made["holds"])
        self.assertEqual(verdicts["out/weight/weight"]["verdict"], "exact")
        self.assertLess(verdicts["out/weight/weight"]["error"], 1e-5)
        self.assertEqual(verdicts["rnn/W/weight/weight"]["verdict"], "approximate")
        self.assertGreater(verdicts["rnn/W/weight/weight"]["error"], 1e-3)

    def test_a_saved_run_is_certified_at_its_weights(self):
        kept = self.file("run.safetensors")
        self.output("train", *SMALL, "--epochs", "4", "--checkpoint", kept, "--quiet")
        first = self.result("verify", *SMALL[:4])
        last = self.result("verify", "--checkpoint", kept)
        self.assertNotEqual(first["cosine"], last["cosine"])
        self.assertIn("The certificate holds", self.output("verify", "--checkpoint", kept))

    def test_only_scored_steps_are_certified(self):
        kept = self.file("run.safetensors")
        options = ["--task", "copying", "--task-option", "delay=3", "--model", "rnn"]
        made = self.result("train", *SMALL[:6], *options, "--epochs", "1", "--lr", "1e-30",
                           "--test-samples", "8", "--checkpoint", kept)
        loss = self.result("verify", "--checkpoint", kept)["loss"]
        self.assertAlmostEqual(loss, made["test_loss"], places=5)

    def test_nothing_exact_is_not_called_exact(self):
        text = self.output("verify", *SMALL[:4], "--model", "lif", "--algorithm", "uoro")
        self.assertNotRegex(text, r"\n\S+ +exact ")
        self.assertIn("No parameter is called exact", text)
        self.assertNotIn("what is called exact is exact", text)

    def test_what_does_not_hold_is_exit_code_1(self):
        done = run("verify", *SMALL[:4], "--tolerance", "1e-12")
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not hold to 1e-12", done.stderr)

    def test_a_report_does_not_change_the_run(self):
        one, two = self.file("one"), self.file("two")
        self.output("train", *SMALL, "--epochs", "1", "--checkpoint", one, "--quiet")
        self.output("train", *SMALL, "--epochs", "1", "--checkpoint", two, "--quiet",
                    "--report", self.file("run.html"))
        self.assertEqual(content(one), content(two))
        self.assertIn("</html>", Path(self.file("run.html")).read_text())

    def test_the_page_of_a_resumed_run_has_all_that_happened(self):
        kept, page = self.file("run.safetensors"), self.folder / "run.html"
        self.output("train", *SMALL, "--task", "digits", "--model", "lif", "--algorithm",
                    "pp_prop", "--epochs", "1", "--checkpoint", kept, "--quiet",
                    "--report", str(page))
        whole = re.search(r'<g class="spikes">.*?</g>', page.read_text(), re.S)
        self.output("train", "--resume", kept, "--quiet", "--report", str(page))
        self.assertGreater(whole.group().count("<rect"), 0)
        self.assertIn(whole.group(), page.read_text())


class Export(Case):
    def builds(self, header, compiler, main):
        source = self.folder / ("main.cpp" if compiler == "g++" else "main.c")
        source.write_text(f'#include "{header}"\n' + main)
        flags = ["-std=c++17" if compiler == "g++" else "-std=c99", "-Wall", "-Wextra",
                 "-Werror", "-O2"]
        subprocess.run([compiler, *flags, str(source), "-o", self.file("a.out"), "-lm"],
                       check=True)
        return subprocess.run([self.file("a.out")], text=True, capture_output=True,
                              check=True).stdout

    def test_a_header_that_learns(self):
        header = self.file("learner.hpp")
        done = run("export", "--model", "gru", "--hidden", "6", "--n-in", "2", "--n-out", "1",
                   "--algorithm", "d_rtrl", "--lr", "0.05", "--out", header)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gru learns with D_RTRL", done.stderr)
        losses = self.builds(header, "g++", """
#include <cstdio>
static learner::Learner l;
int main() {
  for (int t = 0; t < 400; ++t) {
    l.x[0] = std::sin(0.2f * t);
    l.x[1] = std::cos(0.2f * t);
    l.target[0] = std::sin(0.2f * t - 0.6f);
    l.step();
    std::printf("%g\\n", l.loss[0]);
  }
}
""").split()
        mean = [sum(map(float, part)) / 50 for part in (losses[:50], losses[-50:])]
        self.assertLess(mean[1], mean[0] / 4)

    def test_optimisers_move_into_the_header(self):
        for optimizer, field in (("adam", "v_out_weight_weight"),
                                 ("momentum", "m_out_weight_weight")):
            header = self.file(f"{optimizer}.hpp")
            done = run("export", "--model", "gru", "--hidden", "4", "--optimizer", optimizer,
                       "--lr", "0.01", "--out", header)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(field, Path(header).read_text())
        self.refuses(2, "--optimizer", "export", "--model", "gru", "--optimizer", "newton")

    def test_json_tells_what_was_written(self):
        header = self.file("learner.hpp")
        made = self.result("export", "--model", "gru", "--hidden", "4", "--out", header)
        self.assertEqual((made["file"], made["algorithm"]), (header, "D_RTRL"))
        self.assertEqual(made["bytes"], Path(header).stat().st_size)
        whole = self.result("export", "--model", "gru", "--hidden", "4")
        self.assertEqual(whole["header"], Path(header).read_text())

    def test_a_recorded_run_with_a_batch(self):
        recorded = GOLDENS / "op_embed_leaky_drtrl_xent_b3.json"
        text = self.output("export", "--model", str(recorded), "--loss", "cross_entropy")
        self.assertIn("struct Learner", text)

    def test_a_saved_run_in_c(self):
        kept, header = self.file("run.safetensors"), self.file("learner.h")
        self.output("train", *SMALL, "--task", "digits", "--model", "lif", "--algorithm",
                    "pp_prop", "--epochs", "1", "--checkpoint", kept, "--quiet")
        done = run("export", "--checkpoint", kept, "--c99", "--name", "net", "--out", header)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.builds(header, "gcc", """
#include <stdio.h>
static net_Learner l;
int main(void) {
  net_init(&l);
  l.loss_weight[0] = 0;
  net_step(&l);
  l.target[0] = 3;
  l.loss_weight[0] = 1;
  net_step(&l);
  printf("%d %d\\n", l.loss[0] > 0, (int)l.trace_steps[0]);
  return 0;
}
""")
        self.assertEqual(text, "1 2\n")

    def test_refusals(self):
        self.refuses(2, "ThreeFactor needs a modulator", "export", "--algorithm", "three_factor")
        self.refuses(2, "DNI needs a predictor", "export", "--algorithm", "dni")
        self.refuses(2, "'class' is a keyword", "export", "--name", "class")
        self.refuses(2, "BPTT needs whole sequences", "export", "--algorithm", "bptt")
        self.refuses(2, "unknown model 'nope'", "export", "--model", "nope")
        self.refuses(1, "cannot write", "export", "--hidden", "2", "--out", "/nonexistent/x.h")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
