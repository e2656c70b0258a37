#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The C++ programs shown in README.md and docs/: blocks fenced as ```cpp with `int main`.

Usage: docs_programs.py ROOT OUT writes each to OUT/<document>_<n>.cpp (the build compiles and
the tests run them). docs_programs.py ROOT only checks that links lead to a file and
that docs/nn.md is what the headers say.
"""
import re
import sys
from pathlib import Path

import docs_nn_reference

PROGRAM = re.compile(r"^```cpp\n(.*?)^```", re.S | re.M)
CODE = re.compile(r"^```.*?^```|^ {4}[^\n]*|`[^`\n]*`", re.S | re.M)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def documents(root):
    return sorted(root.glob("*.md")) + sorted((root / "docs").rglob("*.md"))


def broken_links(root):
    for path in documents(root):
        for target in LINK.findall(CODE.sub("", path.read_text())):
            if not (path.parent / target).exists():
                yield f"{path.relative_to(root)}: links to {target}, which does not exist"


def write_programs(root, out):
    """Unchanged files keep their time, so that they are not compiled again."""
    out.mkdir(parents=True, exist_ok=True)
    wanted = {}
    for path in documents(root):
        codes = [c for c in PROGRAM.findall(path.read_text()) if "int main" in c]
        for i, code in enumerate(codes):
            wanted[out / f"{path.stem.lower()}_{i}.cpp"] = code
    if not wanted:
        raise SystemExit("docs_programs: the documents show no program")
    for old in set(out.glob("*.cpp")) - wanted.keys():
        old.unlink()
    for path, code in wanted.items():
        if not path.exists() or path.read_text() != code:
            path.write_text(code)


def main():
    root = Path(sys.argv[1])
    if len(sys.argv) > 2:
        write_programs(root, Path(sys.argv[2]))
        return 0
    broken = list(broken_links(root))
    stale = docs_nn_reference.complaint(root)
    for line in [*broken, *filter(None, [stale])]:
        print(line)
    print(f"docs_programs: {len(broken)} broken link(s)")
    return 1 if broken or stale else 0


if __name__ == "__main__":
    sys.exit(main())
