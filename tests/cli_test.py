#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The program `braintrace`: what it prints, and how it refuses.

Usage: cli_test.py PROGRAM ROOT
"""
import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PROGRAM, ROOT = sys.argv[1], Path(sys.argv[2])
MODELS = ("single_rnn", "two_layer_gru", "conv_rnn")
RULE = "=" * 120


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], text=True, capture_output=True, timeout=60)


class Cli(unittest.TestCase):
    def output(self, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def refuses(self, code, message, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), arguments)
        self.assertTrue(done.stderr.startswith("braintrace: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(message, done.stderr)


class Show(Cli):
    def test_compat_text_is_the_text_of_the_reference(self):
        self.assertEqual(self.output("show", "--model", "single_rnn", "--compat"), RULE + """
The hidden groups are:

   Group 0: [('rnn', 'h')]


The weight parameters which are associated with the hidden states are:

   Weight 0: ('rnn', 'W', 'weight')  is associated with hidden group 0


The non-etrace weight parameters are:

   Weight 0: ('out', 'weight')  (excluded: relation_excluded_non_temporal)



""")

    def test_default_text_ends_with_a_verdict_per_parameter(self):
        text = self.output("show", "--model", "conv_rnn")
        table = text[text.index("Every parameter has one verdict:"):]
        self.assertRegex(table, r"\('conv', 'weight'\) +dense ")
        self.assertRegex(table, r"\('rnn', 'W', 'weight'\) +direct ")
        self.assertRegex(table, r"\('out', 'weight'\) +local +it reaches no hidden state")

    def test_verbose_levels(self):
        line = self.output("show", "--model", "single_rnn", "--verbose", "0")
        self.assertEqual(line, "CompilationReport(hidden_groups=1, etrace_weights=2, "
                               "excluded_weights=1, warnings=1, errors=0)\n")
        self.assertNotIn("[warning]", self.output("show", "--model", "single_rnn"))
        self.assertIn("[warning] relation_excluded_non_temporal",
                      self.output("show", "--model", "single_rnn", "--verbose", "2"))

    def test_every_format_of_every_model(self):
        for model in MODELS:
            made = {f: self.output("show", "--model", model, "--format", f)
                    for f in ("code", "ir", "dot", "svg", "html", "json")}
            self.assertTrue(made["code"].startswith("auto step(auto x0,"))
            self.assertTrue(made["ir"].startswith("in %0:f32["))
            self.assertTrue(made["dot"].startswith("digraph "))
            ElementTree.fromstring(made["svg"])
            self.assertTrue(made["html"].startswith("<!DOCTYPE html>"))
            self.assertEqual(set(json.loads(made["json"])),
                             {"hidden_groups", "relations", "excluded_weights",
                              "dynamic_states", "diagnostics", "verdicts", "cuts"})

    def test_pictures_of_the_program(self):
        graph = self.output("show", "--model", "single_rnn", "--format", "dot")
        program = self.output("show", "--model", "single_rnn", "--format", "dot",
                              "--what", "program")
        self.assertIn("cluster_group_0", graph)
        self.assertNotIn("cluster_group_0", program)
        self.assertIn("rnn/h at exit", program)

    def test_options_change_the_graph(self):
        def kinds(*more):
            text = self.output("show", "--model", "two_layer_gru", "--format", "json", *more)
            return {v["path"]: v["verdict"] for v in json.loads(text)["verdicts"]}
        self.assertEqual(kinds()["rnn1/Wr/weight"], "dense")
        self.assertEqual(kinds("--set", "weight_paths=local")["rnn1/Wr/weight"], "local")

    def test_batch_is_the_first_axis_of_the_states(self):
        text = self.output("show", "--model", "single_rnn", "--batch", "3", "--format", "json")
        found = json.loads(text)
        self.assertEqual(found["hidden_groups"][0]["varshape"], [3, 32])
        self.assertEqual(found["relations"][0]["primitive"], "etp_mm")

    def test_models_and_recorded_runs_from_files(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "small.json"
            file.write_text('{"kind": "single_rnn", "n_in": 3, "n_rec": 4}')
            made = json.loads(self.output("show", "--model", str(file), "--format", "json"))
            self.assertEqual(made["hidden_groups"][0]["varshape"], [4])
        recorded = ROOT / "tests/goldens/op_embed_leaky_drtrl_xent_b3.json"
        expected = json.loads(recorded.read_text())["expected"]["graph"]
        made = json.loads(self.output("show", "--model", str(recorded), "--compat",
                                      "--format", "json"))
        self.assertEqual(made["hidden_groups"], expected["hidden_groups"])

    def test_out_writes_a_file_and_prints_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "page.html"
            self.assertEqual(self.output("show", "--model", "single_rnn", "--format", "html",
                                         "--out", str(file)), "")
            self.assertIn("</html>", file.read_text())


class Refusals(Cli):
    def test_wrong_use_is_exit_code_2(self):
        for message, arguments in (
                ("unknown model 'nope'; known: ", ["--model", "nope"]),
                ("cannot read the model file", ["--model", "absent.json"]),
                ("--format: pdf not in", ["--model", "single_rnn", "--format", "pdf"]),
                ("--verbose", ["--model", "single_rnn", "--verbose", "7"]),
                ("--batch", ["--model", "single_rnn", "--batch", "0"]),
                ("--set needs name=value", ["--model", "single_rnn", "--set", "mixing"]),
                ("no option 'nope'", ["--model", "single_rnn", "--set", "nope=1"]),
                ("--set gives 'weight_paths' more than once",
                 ["--model", "gru", "--set", "weight_paths=auto", "--set", "weight_paths=local"]),
                ("--input must be sizes", ["--model", "single_rnn", "--input", "1x2"]),
                ("--model is required", [])):
            with self.subTest(message):
                self.refuses(2, message, "show", *arguments)

    def test_an_unknown_input_shape_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "stack.json"
            layer = {"name": "rnn", "class": "LRUCell", "args": {"d_model": 3, "d_hidden": 4}}
            file.write_text(json.dumps({"kind": "sequential", "layers": [layer]}))
            self.refuses(2, "give --input", "show", "--model", str(file))
            self.assertIn("rnn", self.output("show", "--model", str(file), "--input", "3"))

    def test_short_names_are_models_of_any_size(self):
        text = self.output("show", "--model", "gru", "--format", "json")
        self.assertEqual(json.loads(text)["hidden_groups"][0]["varshape"], [32])

    def test_sizes_and_json_of_show(self):
        text = self.output("show", "--model", "gru", "--hidden", "64", "--n-in", "3", "--json")
        self.assertEqual(json.loads(text)["hidden_groups"][0]["varshape"], [64])
        self.refuses(2, "--format excludes --json", "show", "--model", "gru", "--json",
                     "--format", "dot")

    def test_kinds_take_the_sizes_they_know(self):
        def shape(*options):
            text = self.output("show", "--json", "--model", *options)
            return json.loads(text)["hidden_groups"][0]["varshape"]
        self.assertEqual(shape("lif_net"), [32])
        self.assertEqual(shape("lif_net", "--hidden", "7"), [7])
        self.assertEqual(shape("single_rnn", "--hidden", "5"), [5])
        self.assertEqual(shape("tied", "--hidden", "5", "--input", "5"), [5])
        self.output("show", "--model", "conv_rnn")
        self.refuses(2, "unknown option 'n_in'", "show", "--model", "tied", "--n-out", "3")
        self.assertEqual(shape("tied", "--hidden", "5"), [5])
        self.assertEqual(shape("scan_body"), [32])
        self.assertEqual(shape('{"kind": "embed_leaky", "n_vocab": 5, "n_rec": 3, "n_out": 2}'),
                         [3])
        self.refuses(2, "'n_vocab' must be", "show", "--model", "embed_leaky")
        self.refuses(2, "give options of a kind as JSON, --model '{\"kind\": \"scan_leaky\", ...}'",
                     "show", "--model", "scan_leaky")

    def test_bench_times_no_compilation(self):
        # Compiling makes thousands of allocations; the one timed run makes a handful.
        for mode in ("window", "online", "stream"):
            made = json.loads(self.output("bench", "--model", "gru", "--n-rec", "16", "--steps",
                                          "20", "--repeat", "1", "--mode", mode, "--json"))
            self.assertLess(made["allocations_per_step"] * made["steps"], 50, mode)

    def test_sequences_cut_into_windows_allocate_nothing_once_warm(self):
        for size in ("16", "96"):  # traces cleared in place, and set aside
            made = json.loads(self.output("bench", "--model", "gru", "--n-rec", size, "--batch", "8",
                                          "--steps", "20", "--window", "5", "--repeat", "3",
                                          "--json"))
            self.assertEqual(made["allocations_per_step"], 0, size)
        for model in ("gru", "lif", "lstm"):  # traces that programs move in place
            for rule in ("pp_prop", "eprop", "uoro", "three_factor"):
                made = json.loads(self.output("bench", "--model", model, "--n-rec", "12",
                                              "--batch", "2", "--steps", "20", "--window", "5",
                                              "--algorithm", rule, "--repeat", "3", "--json"))
                self.assertEqual(made["allocations_per_step"], 0, (model, rule))

    def test_the_model_alone_allocates_nothing_once_warm(self):
        for mode in ("window", "stream"):
            made = json.loads(self.output("bench", "--n-rec", "8", "--algorithm", "forward",
                                          "--mode", mode, "--steps", "7", "--repeat", "2",
                                          "--json"))
            self.assertEqual(made["allocations_per_step"], 0, mode)
            self.assertEqual("latency_us" in made, mode == "stream")

    def test_bench_says_where_a_mode_does_something_else(self):
        for rule, mode, note in (("forward", "online", "forward moves no weights"),
                                 ("bptt", "online", "goes back one step only"),
                                 ("bptt", "stream", "goes back one step only"),
                                 ("bptt", "window", None), ("pp_prop", "online", None)):
            text = self.output("bench", "--n-rec", "4", "--steps", "3", "--repeat", "1",
                               "--algorithm", rule, "--mode", mode)
            result = json.loads(text.strip().splitlines()[-1])
            self.assertEqual("note" in result, note is not None, (rule, mode))
            if note:
                self.assertIn(note, result["note"])
                self.assertIn(note, text.splitlines()[0])

    def test_bench_reads_a_file_and_names_defaults(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bench.toml"
            file.write_text('[bench]\nn-rec = 8\nsteps = 4\nrepeat = 1\n')
            made = json.loads(self.output("bench", "--json", "--config", str(file)))
        self.assertEqual((made["n_rec"], made["steps"]), (8, 4))
        text = self.output("bench", "--help")
        self.assertIn("braintrace bench --model gru", text)
        self.assertRegex(text, r"--n-rec INT.*128")

    def test_threads_are_counted_from_zero(self):
        for command in (["train"], ["bench"], ["compare"], ["eval", "--checkpoint", "x"]):
            self.refuses(2, "--threads: must be a whole number from 0", *command,
                         "--threads", "-3")

    def test_bench_times_every_rule(self):
        for rule in ("d_rtrl", "pp_prop", "es_d_rtrl", "esd_rtrl", "eprop", "ostl_recurrent",
                     "ostl_feedforward", "snap", "uoro", "three_factor", "dni", "hybrid", "bptt",
                     "forward"):
            for mode in ("window", "online", "stream"):
                made = json.loads(self.output("bench", "--n-rec", "6", "--batch", "2", "--steps",
                                              "6", "--repeat", "1", "--algorithm", rule, "--mode",
                                              mode, "--json"))
                self.assertGreater(made["step_us_min"], 0, (rule, mode))

    def test_bench_says_how_weights_behind_weights_count(self):
        for given, told in (([], "auto"), (["--compat"], "exclude"),
                            (["--set", "weight_paths=local"], "local")):
            made = json.loads(self.output("bench", "--n-rec", "4", "--steps", "4", "--repeat", "1",
                                          "--json", *given))
            self.assertEqual(made["weight_paths"], told)

    def test_bench_ends_with_one_json_object(self):
        text = self.output("bench", "--model", "gru", "--n-rec", "8", "--batch", "2",
                           "--steps", "6", "--repeat", "1")
        result = json.loads(text.strip().splitlines()[-1])
        for key in ("compile_ms", "step_us_min", "step_us_median", "peak_rss_mb",
                    "allocations_per_step", "gflops", "gemm_bound_us", "first_gradient_ms"):
            self.assertIn(key, result)

    def test_windows_of_two_lengths_allocate_nothing_once_warm(self):
        made = json.loads(self.output("bench", "--n-rec", "8", "--steps", "20", "--window", "7",
                                      "--repeat", "2", "--json"))
        self.assertEqual(made["window"], 7)  # not 6, the length of the last one
        self.assertEqual(made["allocations_per_step"], 0)

    def test_bench_may_end_with_the_first_gradient(self):
        for mode in (["window"], ["online"], ["stream"], ["window", "--algorithm", "forward"]):
            text = self.output("bench", "--n-rec", "8", "--batch", "2", "--steps", "6",
                               "--repeat", "0", "--mode", *mode)
            said, result = text.strip().splitlines()
            self.assertIn("first gradient after", said)
            result = json.loads(result)
            self.assertGreater(result["first_gradient_ms"], 0)
            self.assertGreater(result["compile_ms"], 0)
            self.assertFalse({"step_us_min", "gemm_bound_us"} & set(result))  # nothing timed

    def test_unknown_options_are_named_as_they_were_typed(self):
        self.refuses(2, "not expected: --samplse 64 --fast; braintrace train --help",
                     "train", "--samplse", "64", "--fast")
        self.refuses(2, "not expected: --fast; braintrace", "--fast", "train")

    def test_no_command_is_exit_code_2(self):
        self.refuses(2, "give a command: show, train")
        self.refuses(2, "unknown command 'paint'; there are: show, train, ", "paint")

    def test_an_input_that_does_not_fit_is_exit_code_2(self):
        for command in ("show", "plan", "export"):
            with self.subTest(command):
                self.refuses(2, "--input 3: GRUCell: the last axis", command, "--model", "gru", "--input", "3")

    def test_a_short_name_given_as_a_kind_is_told_apart(self):
        for name, kind in (("gru", '"sequential"'), ("lif", '"lif_net"')):
            for command in ("show", "train"):
                self.refuses(2, f"'{name}' is a short name, not a kind: give --model {name} ",
                             command, "--model", json.dumps({"kind": name}))
            self.refuses(2, f'"kind":{kind}', "show", "--model", json.dumps({"kind": name}))

    def test_arguments_of_rules_have_options_of_their_own(self):
        for name, option in (("decay_or_rank", "--decay"), ("kappa", "--kappa"), ("n", "--snap-n")):
            self.refuses(2, f"--set: no option '{name}'; give {option}; there are ", "train",
                         "--set", f"{name}=0.9")

    def test_a_file_that_cannot_be_written_is_exit_code_1(self):
        self.refuses(1, "cannot write", "show", "--model", "single_rnn", "--out",
                     "/nonexistent/page.html")

    def test_broken_model_files_are_exit_code_2(self):
        with tempfile.TemporaryDirectory() as folder:
            for text in ("", "[]", "{", '{"kind": 3}', '{"kind": "single_rnn", "n_in": -1}',
                         '{"kind": "single_rnn", "n_in": "x"}', '{"model": 3}',
                         '{"kind": "single_rnn", "size": 3}'):
                file = Path(folder) / "broken.json"
                file.write_text(text)
                with self.subTest(text):
                    self.refuses(2, "", "show", "--model", str(file))


class Help(Cli):
    def test_help_shows_examples(self):
        self.assertIn("braintrace show --model single_rnn", self.output("--help"))
        self.assertIn("--format", self.output("show", "--help"))

    def test_version(self):
        self.assertRegex(self.output("--version"), r"^braintrace \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
