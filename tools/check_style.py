#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks licence lines, format, spelling and the op lists.

Usage: check_style.py [--fix] [ROOT]. --fix formats the C++ files and sorts the op lists.
Format and spelling are checked only where clang-format 14 and codespell are installed.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

from check_size import SUFFIXES, files

SPDX = "SPDX-License-Identifier: Apache-2.0"
OP_DEFINED = re.compile(r"^const OpDef (\w+_op)\s*=", re.M)
FUNCTION_DEFINED = re.compile(r"^(?:Value|Values|\w+Result) (\w+)\(", re.M)
INTERNAL = "// Internal op"  # in op files that offer no function in ops.h
LISTS = {
    "op_list.h": re.compile(r"^extern const OpDef (\w+_op);$", re.M),
    "registry.cpp": re.compile(r"^    &(\w+_op),$", re.M),
}
BUILT_INTO_IR = {"constant_op"}


def check_licences(root):
    for path in files(root, SUFFIXES):
        lines = path.read_text().split("\n")[:2]
        first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
        mark = "//" if path.suffix in (".h", ".cpp") else "#"
        if first != f"{mark} {SPDX}":
            yield f"{path}:1: the first line must be '{mark} {SPDX}'"


def clang_format():
    """clang-format 14 or None: other versions format differently."""
    for name in ("clang-format-14", "clang-format"):
        if not shutil.which(name):
            continue
        version = subprocess.run([name, "--version"], text=True, capture_output=True).stdout
        if "version 14." in version:
            return name
    return None


def cpp_files(root):
    return [str(p) for p in files(root, (".h", ".cpp"))]


def check_format(root):
    program = clang_format()
    if not program or not (root / ".clang-format").exists():
        return
    paths, complaints = cpp_files(root), {}
    for first in range(0, len(paths), 50):  # starting the program costs as much as a file
        done = subprocess.run([program, "--dry-run", "-Werror", *paths[first:first + 50]],
                              text=True, capture_output=True)
        for line in done.stderr.splitlines() if done.returncode else ():
            if ": error:" in line:
                complaints.setdefault(line.split(":")[0], line)
    for path, line in complaints.items():
        yield f"{path}: not formatted ({line}); run tools/check_style.py --fix"


def check_spelling(root):
    if not shutil.which("codespell"):
        return
    texts = files(root, (*SUFFIXES, ".md", ".txt", ".cmake"))
    known = root / "tools/spelling.txt"
    ignore = ["-I", str(known)] if known.exists() else []
    done = subprocess.run(["codespell", *ignore, *map(str, texts)], text=True,
                          capture_output=True)
    for line in done.stdout.splitlines():
        yield f"{line} (spelling; words to accept go into tools/spelling.txt)"


def defined_ops(ops):
    """Op object -> file that defines it."""
    found = {}
    for path in sorted(ops.glob("*.cpp")):
        if not path.stem.endswith("_test"):
            for name in OP_DEFINED.findall(path.read_text()):
                found[name] = path
    return found


def check_list(path, pattern, defined):
    if not path.exists():
        yield f"{path}: missing"
        return
    names = pattern.findall(path.read_text())
    if names != sorted(set(names)):
        yield f"{path}: entries must be sorted and distinct; run tools/check_style.py --fix"
    for name in defined.keys() - set(names):
        yield f"{path}: {name} (defined in {defined[name].name}) is not listed"
    for name in set(names) - defined.keys() - BUILT_INTO_IR:
        yield f"{path}: lists {name}, which no file defines"


def check_ops(root):
    ops = root / "braintrace/ops"
    if not ops.exists():
        return
    defined = defined_ops(ops)
    for name, pattern in LISTS.items():
        yield from check_list(ops / name, pattern, defined)
    header = ops / "ops.h"
    public = header.read_text() if header.exists() else ""
    for path in sorted(set(defined.values())):
        text = path.read_text()
        offered = [f for f in FUNCTION_DEFINED.findall(text) if re.search(rf"\b{f}\(", public)]
        if not offered and INTERNAL not in text:
            yield f"{path}: defines no function of ops.h; if intended, say '{INTERNAL}: ...'"
        if not path.with_name(path.stem + "_test.cpp").exists():
            yield f"{path}: has no {path.stem}_test.cpp"


def fix(root):
    for name, pattern in LISTS.items():
        path = root / "braintrace/ops" / name
        text = path.read_text()
        lines = {m.group(1): m.group() for m in pattern.finditer(text)}
        first, last = text.index(next(iter(lines.values()))), 0
        for m in pattern.finditer(text):
            last = m.end()
        sorted_text = text[:first] + "\n".join(lines[n] for n in sorted(lines)) + text[last:]
        if sorted_text != text:  # half of the library is compiled again after a change
            path.write_text(sorted_text)
    if program := clang_format():
        subprocess.run([program, "-i", *cpp_files(root)], check=True)


def main():
    args = [a for a in sys.argv[1:] if a != "--fix"]
    root = Path(args[0] if args else Path(__file__).parent.parent)
    if "--fix" in sys.argv:
        fix(root)
    found = [line for check in (check_licences, check_format, check_spelling, check_ops)
             for line in check(root)]
    for line in found:
        print(line.replace(f"{root}/", ""))
    print(f"check_style: {len(found)} violation(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
