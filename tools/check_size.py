#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reports long files and long functions: files warn at 400 lines and fail at 800,
functions warn at 60 and fail at 120.

Usage: check_size.py [ROOT]. Functions are found by counting braces: good enough to see
what has grown too long, not a parser.
"""
import os
import re
import sys
from pathlib import Path

FILE_WARN, FILE_FAIL = 400, 800
FUNCTION_WARN, FUNCTION_FAIL = 60, 120
SUFFIXES = (".h", ".cpp", ".py", ".sh")

NOISE = re.compile(
    r'R"([^(\s]*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
    r"|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.S | re.M)
PREFIX = re.compile(r"^\s*(?:(?:public|private|protected)\s*:\s*"
                    r"|template\s*<(?:[^<>]|<[^<>]*>)*>\s*)*")
SCOPE = re.compile(r"^\s*(?:inline\s+)?(?:namespace|class|struct|enum|union|extern)\b")
# A body follows a parameter list, perhaps with const, noexcept, -> type or an initialiser list.
FUNCTION_HEAD = re.compile(r"\)\s*(?:const|noexcept|override|final|mutable|&|\s)*"
                           r"(?:->\s*[^;={}]+|:\s*[^;]*)?\s*$")


def strip_noise(text):
    return NOISE.sub(lambda m: "\n" * m.group().count("\n"), text)


def function_name(head):
    names = re.findall(r"([~\w:]+)\s*\(", head)
    return names[0] if names else "?"


def functions(text):
    """(name, first line, number of lines) of every outermost function body."""
    code = strip_noise(text)
    stack, inside = [], None  # inside = (name, head line, depth)
    head_start, line, head_line = 0, 1, None
    for i, c in enumerate(code):
        if c == "\n":
            line += 1
        elif not c.isspace() and head_line is None:
            head_line = line
        if c == "{":
            head = PREFIX.sub("", code[head_start:i])
            scope = SCOPE.match(head)
            starts = (inside is None and "data" not in stack and not scope
                      and FUNCTION_HEAD.search(head))
            if starts:
                inside = (function_name(head), head_line, len(stack))
            stack.append("code" if starts or scope or inside else "data")
        elif c == "}":
            if stack:
                stack.pop()
            if inside and len(stack) == inside[2]:
                yield inside[0], inside[1], line - inside[1] + 1
                inside = None
        if c in "{};":
            head_start, head_line = i + 1, None


def files(root, suffixes):
    """Sorted files of the tree; build and hidden folders are left out."""
    found = []
    for folder, names, leaves in os.walk(root):
        names[:] = [n for n in names if n != "build" and not n.startswith(".")]
        found += [Path(folder) / f for f in leaves if Path(f).suffix in suffixes]
    return sorted(found)


def check(root):
    """(level, message) per finding."""
    for path in files(root, SUFFIXES):
        text = path.read_text()
        lines = text.count("\n")
        if lines > FILE_WARN:
            level = "fail" if lines > FILE_FAIL else "warn"
            yield level, f"{path}: {lines} lines (at most {FILE_WARN})"
        if path.suffix not in (".h", ".cpp"):
            continue
        for name, line, length in functions(text):
            if length > FUNCTION_WARN:
                level = "fail" if length > FUNCTION_FAIL else "warn"
                yield level, f"{path}:{line}: {name} has {length} lines (at most {FUNCTION_WARN})"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    found = list(check(root))
    for level, message in found:
        print(f"{level}: " + message.replace(f"{root}/", ""))
    failures = sum(level == "fail" for level, _ in found)
    print(f"check_size: {len(found) - failures} warning(s), {failures} failure(s)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
