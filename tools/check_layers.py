#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the walls between rooms (docs/house.txt): includes, private headers, op objects.

Usage: check_layers.py [ROOT]. Prints one line per violation; exit status 1 if there is any.
"""
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](braintrace/[^">]+)[">]', re.M)
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
OP_DECLARED = re.compile(r"\bextern\s+const\s+OpDef\s+(\w+_op)\s*;")
OP_NAME = r"\bop\s*(?:->|\.)\s*name\b"
OP_NAME_COMPARED = re.compile(rf"{OP_NAME}\s*[!=]=|[!=]=\s*[\w.()*]*(?:->)?{OP_NAME}")


def read_house(path):
    """Room -> allowed rooms, and the @settings."""
    rooms, settings = {}, {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, colon, rest = line.partition(":")
        if not colon:
            raise SystemExit(f"{path}:{number}: expected 'room: rooms', found '{line}'")
        target = settings if name.startswith("@") else rooms
        target[name.lstrip("@").strip()] = set(rest.split())
    for room, allowed in rooms.items():
        for other in allowed - rooms.keys():
            raise SystemExit(f"{path}: '{room}' names the unknown room '{other}'")
    return rooms, settings


def code_only(text):
    """The text without comments and string literals; line numbers stay."""
    return COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def is_test(path):
    return path.stem.endswith("_test")


def check_includes(path, room, text, rooms):
    for m in INCLUDE.finditer(text):
        where = f"{path}:{line_of(text, m.start(1))}"
        parts = m.group(1).split("/")
        other, name = parts[1], parts[-1]
        if other not in rooms:
            yield f"{where}: includes {m.group(1)}, which is in no known room"
        elif other != room and name.endswith("_impl.h"):
            yield f"{where}: {name} is private to the room '{other}'"
        elif is_test(Path(name)):
            yield f"{where}: includes the test {name}"
        elif other == room or is_test(path):
            continue
        elif other not in rooms[room]:
            yield f"{where}: room '{room}' may not include '{other}' ({m.group(1)})"
        elif m.group(1) == "braintrace/ops/op_list.h":
            yield f"{where}: op_list.h is for files of ops/ only"


def check_op_wall(path, room, text, ops, settings):
    code = code_only(text)
    if room not in settings.get("op_objects", set()):
        for m in re.finditer(r"\b\w+_op\b", code):
            if m.group() in ops:
                yield (f"{path}:{line_of(code, m.start())}: names the op object "
                       f"{m.group()}; ask a trait or a rule slot")
    if room not in settings.get("op_names", set()):
        for m in OP_NAME_COMPARED.finditer(code):
            yield (f"{path}:{line_of(code, m.start())}: compares an op's name; "
                   "ask a trait or a rule slot")


def check(root):
    rooms, settings = read_house(root / "docs/house.txt")
    op_list = root / "braintrace/ops/op_list.h"
    ops = set(OP_DECLARED.findall(op_list.read_text())) if op_list.exists() else set()
    for path in sorted((root / "braintrace").rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        inside = path.relative_to(root / "braintrace")
        if len(inside.parts) != 2:
            yield f"{path}: source files live in braintrace/<room>/, no deeper"
            continue
        room = inside.parts[0]
        if room not in rooms:
            yield f"{path}: room '{room}' is not in docs/house.txt"
            continue
        text = path.read_text()
        yield from check_includes(path, room, text, rooms)
        if not is_test(path):
            yield from check_op_wall(path, room, text, ops, settings)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    found = list(check(root))
    for line in found:
        print(line.replace(f"{root}/", ""))
    print(f"check_layers: {len(found)} violation(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
