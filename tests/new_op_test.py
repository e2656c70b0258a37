#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tools/new_op.py on a copy of the tree: the result must pass the style check, compile and
work.

Usage: new_op_test.py ROOT BUILD COMPILER [FLAG...].
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = {"aaa_first": [], "mid_op": ["--binary"], "zzz_last": []}
PROGRAM = """\
#include "braintrace/ops/ops.h"
#include "braintrace/ops/op_list.h"
using namespace braintrace;
int main() {
  const Array x = array({0.5, -1}, DType::f64);
  const bool unary = aaa_first(x).array() == x && zzz_last(x).array() == x;
  const bool binary = mid_op(x, 2).array() == array({2.5, 1}, DType::f64);
  return unary && binary && aaa_first_op.jvp && mid_op_op.arity == 2 ? 0 : 1;
}
"""


def run(*command):
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True)
    return done.returncode, done.stdout + done.stderr


def must(*command):
    status, output = run(*command)
    if status:
        raise SystemExit(f"{command} failed:\n{output}")


def copy_tree(root, copy):
    for folder in ("braintrace/ops", "tools"):  # other headers are read from ROOT
        shutil.copytree(root / folder, copy / folder)
    shutil.copy(root / ".clang-format", copy)


def compile_and_run(root, copy, build, compiler):
    ops = copy / "braintrace/ops"
    (copy / "main.cpp").write_text(PROGRAM)
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
             f"-I{copy}", f"-I{root}"]
    for name in NAMES:
        must(*compiler, *flags, "-fsyntax-only", ops / f"{name}_test.cpp")
    must(*compiler, *flags, copy / "main.cpp", *(ops / f"{n}.cpp" for n in NAMES),
         build / "braintrace/libbraintrace.a", "-lfmt", "-lhwy", "-o", copy / "main")
    must(copy / "main")


def main():
    root, build, compiler = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        copy_tree(root, copy)
        before = run(sys.executable, copy / "tools/check_style.py")[1]
        for name, options in NAMES.items():
            must(sys.executable, copy / "tools/new_op.py", *options, name)
        after = run(sys.executable, copy / "tools/check_style.py")[1]
        if after != before:
            raise SystemExit(f"the style check complains about the new files:\n{after}")
        for bad in ("tanh", "zzz_last", "Bad", "2x", "a-b"):
            status, output = run(sys.executable, copy / "tools/new_op.py", bad)
            if status == 0:
                raise SystemExit(f"new_op.py accepted '{bad}': {output}")
        compile_and_run(root, copy, build, compiler)
    print("new_op_test: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
