#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first version of an element-by-element op: its file, its test and its line in
op_list.h, registry.cpp and ops.h (docs/adding_an_op.md).

Usage: new_op.py [--binary] [--root ROOT] NAME. The op computes the identity (or a + b) until
you change `eval_NAME` and `jvp_NAME`.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

from check_style import LISTS, clang_format

OP = """\
// SPDX-License-Identifier: Apache-2.0
// y = {formula}, element by element.
#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {{
namespace {{

void eval_{name}(const Kernel& k) {{
  {loop}(k, []({lambda}) {{ return {value}; }});
}}

// {derivative}
std::vector<Tangent> jvp_{name}(const Site&, std::span<const Tangent> d) {{
  return {{{tangent}}};
}}

}}  // namespace

const OpDef {name}_op = {{
    .name = "{name}",
    .traits = Trait::elementwise,
    .arity = {arity},
    .infer = same_float,
    .eval = eval_{name},
    .code = "{name}({code})",
    .jvp = jvp_{name},
}};

Value {name}({parameters}) {{ return elementwise_float({name}_op, {{{arguments}}}); }}

}}  // namespace braintrace
"""

TEST = """\
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/ops/ops.h"
#include "braintrace/testing/check_op.h"

using namespace braintrace;
using testing::check_op;
using testing::uniform;

TEST_CASE("{name}") {{
  check_op({{.op = "{name}",
            .build = [](const Values& in) {{ return Values{{{name}({inputs})}}; }},
            .inputs = {{{data}}},
            .expect = {{{{{{{points}}},
                        {{array({{{expected}}}, DType::f64)}}}}}}}});
}}
"""

UNARY = dict(formula="x", loop="map_float", lambda_="auto x", value="x", derivative="dy = dx.",
             tangent="d[0]", arity=1, code="$0", parameters="Arg x", arguments="x",
             inputs="in[0]", data="uniform({3, 4}, -2, 2)",
             points="array({0.5}, DType::f64)", expected="0.5")
BINARY = dict(formula="a + b", loop="map2_float", lambda_="auto a, auto b", value="a + b",
              derivative="dy = da + db.", tangent="sum_tangents(d[0], d[1])", arity=2,
              code="$0, $1", parameters="Arg a, Arg b", arguments="a, b",
              inputs="in[0], in[1]", data="uniform({3, 4}, -2, 2, 1), uniform({3, 4}, -2, 2, 2)",
              points="array({0.5}, DType::f64), array({2}, DType::f64)", expected="2.5")
SECTION = "// ---- element by element"


def write_new(path, text):
    if path.exists():
        raise SystemExit(f"new_op: {path} exists already")
    path.write_text(text)
    if program := clang_format():
        subprocess.run([program, "-i", str(path)], check=True)


def insert_sorted(path, pattern, name, line):
    """Puts the line where its object's name belongs among the lines the pattern finds."""
    text = path.read_text()
    after = [m for m in pattern.finditer(text) if m.group(1) > name]
    if after:
        at = after[0].start()
    else:
        at = list(pattern.finditer(text))[-1].end() + 1
    path.write_text(text[:at] + line + "\n" + text[at:])


def insert_declaration(path, name, parameters, binary):
    """Into the unary or binary block of the first section of ops.h."""
    text = path.read_text()
    start = text.index(SECTION)
    kind = r"Arg a, Arg b" if binary else r"Arg x"
    pattern = re.compile(rf"^Value (\w+)\({kind}\);[^\n]*$", re.M)
    end = text.index("\n// ---- ", start + 1)
    found = list(pattern.finditer(text, start, end))
    after = [m for m in found if m.group(1) > name]
    at = after[0].start() if after else found[-1].end() + 1
    path.write_text(text[:at] + f"Value {name}({parameters});\n" + text[at:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name")
    parser.add_argument("--binary", action="store_true", help="two operands")
    parser.add_argument("--root", type=Path, default=Path(__file__).parent.parent)
    args = parser.parse_args()
    if not re.fullmatch(r"[a-z][a-z0-9_]*", args.name):
        raise SystemExit(f"new_op: '{args.name}' must be lower_case_with_underscores")
    ops = args.root / "braintrace/ops"
    if re.search(rf"\b{args.name}\(", (ops / "ops.h").read_text()):
        raise SystemExit(f"new_op: ops.h declares '{args.name}' already")
    values = dict(BINARY if args.binary else UNARY, name=args.name)
    values["lambda"] = values.pop("lambda_")
    write_new(ops / f"{args.name}.cpp", OP.format(**values))
    write_new(ops / f"{args.name}_test.cpp", TEST.format(**values))
    insert_sorted(ops / "op_list.h", LISTS["op_list.h"], f"{args.name}_op",
                  f"extern const OpDef {args.name}_op;")
    insert_sorted(ops / "registry.cpp", LISTS["registry.cpp"], f"{args.name}_op",
                  f"    &{args.name}_op,")
    insert_declaration(ops / "ops.h", args.name, values["parameters"], args.binary)
    print(f"new_op: wrote braintrace/ops/{args.name}.cpp and {args.name}_test.cpp; "
          "next: eval and jvp, then ninja -C build/dev test_ops")
    return 0


if __name__ == "__main__":
    sys.exit(main())
