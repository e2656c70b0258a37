#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each house check must accept a good tree and reject one seeded fault at a time."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"

GOOD = {
    "docs/house.txt": "base:\nir: base\nops: base ir\nnn: base ir ops\n"
                      "@op_objects: ops\n@op_names: ops\n",
    "braintrace/base/a.h": LICENCE + "#pragma once\n",
    "braintrace/base/a_impl.h": LICENCE + "#pragma once\n",
    "braintrace/ops/op_list.h": LICENCE + "extern const OpDef cos_op;\n"
                                          "extern const OpDef sin_op;\n",
    "braintrace/ops/registry.cpp": LICENCE + "    &cos_op,\n    &sin_op,\n",
    "braintrace/ops/ops.h": LICENCE + "Value cos(Arg x);\nValue sin(Arg x);\n",
    "braintrace/ops/cos.cpp": LICENCE + "const OpDef cos_op = {};\nValue cos(Arg x) {}\n",
    "braintrace/ops/cos_test.cpp": LICENCE,
    "braintrace/ops/sin.cpp": LICENCE + "const OpDef sin_op = {};\nValue sin(Arg x) {}\n",
    "braintrace/ops/sin_test.cpp": LICENCE,
    "braintrace/nn/cell.cpp": LICENCE + '#include "braintrace/ops/ops.h"\n'
                                        "// cos_op is only mentioned in this comment\n",
    "braintrace/base/cell_test.cpp": LICENCE + '#include "braintrace/nn/cell.h"\n'
                                               "auto* op = &cos_op;\n",
}


def run(tool, files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(ROOT / "tools" / tool), folder],
                              text=True, capture_output=True)
        return done.returncode, done.stdout + done.stderr


class HouseTest(unittest.TestCase):
    def accepts(self, tool, changes=None):
        status, output = run(tool, {**GOOD, **(changes or {})})
        self.assertEqual(status, 0, output)
        return output

    def rejects(self, tool, changes, message):
        status, output = run(tool, {**GOOD, **changes})
        self.assertEqual(status, 1, output)
        self.assertIn(message, output)

    def test_good_tree_passes(self):
        for tool in ("check_layers.py", "check_size.py", "check_style.py"):
            self.accepts(tool)

    def test_include_of_a_higher_room_fails(self):
        self.rejects("check_layers.py",
                     {"braintrace/base/b.cpp": LICENCE + '#include "braintrace/ir/x.h"\n'},
                     "base/b.cpp:2: room 'base' may not include 'ir'")

    def test_include_in_angle_brackets_is_seen(self):
        self.rejects("check_layers.py",
                     {"braintrace/base/b.h": "#  include <braintrace/ir/x.h>\n"},
                     "may not include 'ir'")

    def test_private_header_of_another_room_fails_even_in_tests(self):
        self.rejects("check_layers.py",
                     {"braintrace/ir/b_test.cpp": '#include "braintrace/base/a_impl.h"\n'},
                     "private to the room 'base'")

    def test_private_header_of_the_own_room_passes(self):
        self.accepts("check_layers.py",
                     {"braintrace/base/b.cpp": '#include "braintrace/base/a_impl.h"\n'})

    def test_deeper_folder_fails(self):
        self.rejects("check_layers.py", {"braintrace/ir/deep/b.cpp": LICENCE}, "no deeper")

    def test_unknown_room_fails(self):
        self.rejects("check_layers.py", {"braintrace/attic/b.cpp": LICENCE},
                     "'attic' is not in docs/house.txt")

    def test_op_object_outside_ops_fails(self):
        self.rejects("check_layers.py",
                     {"braintrace/nn/b.cpp": LICENCE + "if (n.op == &cos_op) f();\n"},
                     "nn/b.cpp:2: names the op object cos_op")

    def test_op_list_outside_ops_fails(self):
        self.rejects("check_layers.py",
                     {"braintrace/nn/b.cpp": '#include "braintrace/ops/op_list.h"\n'},
                     "op_list.h is for files of ops/ only")

    def test_comparing_op_names_fails_in_both_orders(self):
        for code in ('if (n.op->name == "cos") f();', 'if ("cos" != n.op->name) f();',
                     "if (wanted == op.name) f();"):
            self.rejects("check_layers.py", {"braintrace/nn/b.cpp": code + "\n"},
                         "compares an op's name")

    def test_printing_an_op_name_passes(self):
        self.accepts("check_layers.py", {"braintrace/nn/b.cpp": "text += n.op->name;\n"})

    def test_long_file_warns_then_fails(self):
        output = self.accepts("check_size.py", {"braintrace/base/b.h": "\n" * 401})
        self.assertIn("warn: braintrace/base/b.h: 401 lines", output)
        self.rejects("check_size.py", {"braintrace/base/b.h": "\n" * 801},
                     "fail: braintrace/base/b.h: 801 lines")

    def test_long_function_warns_then_fails(self):
        def body(lines):
            return "namespace n {\nstruct S {\n int f() const {\n" + "  g({1});\n" * lines + \
                   " }\n};\n}\n"
        output = self.accepts("check_size.py", {"braintrace/base/b.h": body(59)})
        self.assertIn("warn: braintrace/base/b.h:3: f has 61 lines", output)
        self.rejects("check_size.py", {"braintrace/base/b.h": body(119)},
                     "fail: braintrace/base/b.h:3: f has 121 lines")

    def test_long_class_of_short_functions_passes(self):
        text = "class C {\n" + " public:\n  int f() { return 1; }\n" * 90 + "};\n"
        self.assertIn("0 warning", self.accepts("check_size.py", {"braintrace/base/b.h": text}))

    def test_missing_licence_fails(self):
        self.rejects("check_style.py", {"braintrace/base/b.h": "#pragma once\n"},
                     "base/b.h:1: the first line must be")

    @unittest.skipUnless(shutil.which("codespell"), "codespell is not installed")
    def test_misspelt_word_fails(self):
        word = "recie" + "ve"  # in two parts: this file is checked too
        self.rejects("check_style.py", {"docs/a.md": f"They {word} it.\n"}, word)

    @unittest.skipUnless(shutil.which("clang-format-14"), "clang-format 14 is not installed")
    def test_unformatted_file_fails(self):
        self.rejects("check_style.py", {".clang-format": "BasedOnStyle: Google\n",
                                        "braintrace/base/b.h": LICENCE + "int   x;\n"},
                     "base/b.h: not formatted")

    def test_unsorted_list_fails(self):
        self.rejects("check_style.py",
                     {"braintrace/ops/registry.cpp": LICENCE + "    &sin_op,\n    &cos_op,\n"},
                     "registry.cpp: entries must be sorted and distinct")

    def test_duplicate_entry_fails(self):
        twice = GOOD["braintrace/ops/op_list.h"] + "extern const OpDef sin_op;\n"
        self.rejects("check_style.py", {"braintrace/ops/op_list.h": twice},
                     "op_list.h: entries must be sorted and distinct")

    def test_unlisted_op_fails(self):
        text = LICENCE + "const OpDef tan_op = {};\nValue sin(Arg x) {}\n"
        self.rejects("check_style.py", {"braintrace/ops/tan.cpp": text,
                                        "braintrace/ops/tan_test.cpp": LICENCE},
                     "registry.cpp: tan_op (defined in tan.cpp) is not listed")

    def test_listed_op_without_definition_fails(self):
        self.rejects("check_style.py",
                     {"braintrace/ops/cos.cpp": LICENCE + "Value cos(Arg x) {}\n"},
                     "lists cos_op, which no file defines")

    def test_op_without_test_fails(self):
        tree = {k: v for k, v in GOOD.items() if k != "braintrace/ops/cos_test.cpp"}
        status, output = run("check_style.py", tree)
        self.assertEqual(status, 1)
        self.assertIn("cos.cpp: has no cos_test.cpp", output)

    def test_op_outside_the_public_header_must_say_so(self):
        hidden = LICENCE + "const OpDef cos_op = {};\n"
        self.rejects("check_style.py", {"braintrace/ops/cos.cpp": hidden},
                     "cos.cpp: defines no function of ops.h")
        self.accepts("check_style.py",
                     {"braintrace/ops/cos.cpp": hidden + "// Internal op: half of sin.\n"})


if __name__ == "__main__":
    unittest.main()
