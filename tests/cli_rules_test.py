#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The program `braintrace`: planning, comparing and verifying learning rules.

Usage: cli_rules_test.py PROGRAM
"""
import json
import re
import resource
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from cli_case import PROGRAM, SMALL, Case, content, run


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

    def test_arguments_that_no_rule_takes_are_refused(self):
        self.refuses(2, "--memory is an argument of auto; it does nothing for all", "plan",
                     "--memory", "1MB")
        self.refuses(2, "--decay is an argument of pp_prop, hybrid and auto; it does nothing for "
                     "d_rtrl", "train", "--algorithm", "d_rtrl", "--decay", "0.5")
        self.refuses(2, "--kappa is an argument of eprop", "verify", "--kappa", "0.5")
        self.refuses(2, "--snap-n is an argument of snap; it does nothing for d_rtrl, eprop",
                     "compare", "--algorithms", "d_rtrl,eprop", "--snap-n", "3")
        self.refuses(2, "--kappa is an argument of eprop", "export", "--kappa", "0.5")
        self.output("plan", "--algorithm", "pp_prop", "--decay", "0.5", "--hidden", "4")
        self.output("plan", "--kappa", "0.5", "--snap-n", "3", "--hidden", "4")

    def test_nothing_is_allocated_for_a_plan(self):
        made = self.result("plan", "--model", "lif", "--hidden", "2000", "--batch", "1000",
                           "--algorithm", "d_rtrl")
        self.assertGreater(made["bytes"], 8e9)

    def test_a_model_that_does_not_fit_into_memory_is_refused(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
        done = subprocess.run([PROGRAM, "plan", "--hidden", "100000"], preexec_fn=limit, text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "braintrace: out of memory: model, batch or sequence are too "
                                      "large for this machine\n")

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

    def test_an_input_that_does_not_fit_is_no_plan(self):
        for rule in ("all", "auto", "d_rtrl"):
            self.refuses(2, "must have 10 entries, got x [1,2,3]", "plan", "--input", "1,2,3",
                         "--algorithm", rule)

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


class Diverged(Case):
    WILD = ["compare", *SMALL[:4], "--updates", "3", "--clip-norm", "0", "--optimizer", "sgd"]

    def test_a_rule_that_diverges_leaves_the_others(self):
        arguments = [*self.WILD, "--model", "rnn", "--lr", "100", "--algorithms", "d_rtrl,uoro"]
        made = {r["algorithm"]: r for r in self.result(*arguments)["rules"]}
        self.assertEqual([r["diverged"] for r in made.values()], [False, True])
        self.assertGreater(made["d_rtrl"]["test_loss"], 1e6)
        self.assertIsNone(made["uoro"]["test_loss"])
        text = self.output(*arguments)
        self.assertRegex(text, r"\n  d_rtrl +[\d.e+]+ +[\d.e+]+ % ")
        self.assertRegex(text, r"\n  uoro +diverged +- ")
        self.assertRegex(text, r"\ndiverged: uoro at batch \d\.\n")

    def test_rules_that_all_diverge_are_told_and_exit_code_1(self):
        done = run(*self.WILD, "--lr", "1e30", "--algorithms", "d_rtrl,bptt", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("every rule has diverged (d_rtrl at batch 2, bptt at batch 2)", done.stderr)
        made = json.loads(done.stdout)
        self.assertEqual([r["diverged"] for r in made["rules"]], [True, True])


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

    def test_bptt_has_no_updates_at_steps(self):
        self.refuses(2, "BPTT needs whole sequences; with an update at every step it would go "
                     "back one step only. Use update sequence", "train", *SMALL, "--algorithm",
                     "bptt", "--update", "step")

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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
