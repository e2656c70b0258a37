#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The program `braintrace`: learners as headers.

Usage: cli_export_test.py PROGRAM
"""
import subprocess
import sys
import unittest
from pathlib import Path

from cli_case import SMALL, Case, run

GOLDENS = Path(__file__).parent / "goldens"


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

    def test_a_saved_run_keeps_its_options_and_takes_no_others(self):
        kept = self.file("run.safetensors")
        self.output("train", *SMALL, "--epochs", "1", "--set", "newest=trace", "--checkpoint", kept,
                    "--quiet")
        text = self.output("export", "--checkpoint", kept)
        self.assertEqual(text, self.output("export", "--checkpoint", kept, "--set", "newest=trace"))
        self.assertNotEqual(text,
                            self.output("export", "--checkpoint", kept, "--set", "newest=exact"))
        for command in ("export", "verify"):
            self.refuses(2, f"{command}: --hidden is a part of the run that --checkpoint names and "
                         "cannot be given again", command, "--checkpoint", kept, "--hidden", "4")

    def test_refusals(self):
        self.refuses(2, "ThreeFactor needs a modulator", "export", "--algorithm", "three_factor")
        self.refuses(2, "DNI needs a predictor", "export", "--algorithm", "dni")
        self.refuses(2, "'class' is a keyword", "export", "--name", "class")
        self.refuses(2, "BPTT needs whole sequences", "export", "--algorithm", "bptt")
        self.refuses(2, "unknown model 'nope'", "export", "--model", "nope")
        self.refuses(1, "cannot write", "export", "--hidden", "2", "--out", "/nonexistent/x.h")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
