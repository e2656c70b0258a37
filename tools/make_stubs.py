#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the type stubs of the extension module from its own signatures.

Usage: make_stubs.py OUT_DIR. The package must be importable; OUT_DIR gets _core.pyi, nn.pyi and
_optimizers.pyi.
The tests compare the stored stubs with what this program writes.
"""
import inspect
import keyword
import os
import re
import sys
from pathlib import Path

os.environ["BRAINTRACE_SIGNATURES"] = "1"

HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

'''
CORE_HEAD = HEAD + '''import numpy

ArrayLike = Union["Value", numpy.ndarray, numpy.generic, float, int, bool, Sequence[Any]]
Size = Union[int, Sequence[int]]
DTypeLike = Any

'''
# pybind11's words for types -> ours.
WORDS = [
    (r"braintrace_cpp\._core\.(?:\w+\.)?", ""), (r"\bbraintrace::\w+(?:::\w+)*\b", "Any"),
    (r"\bdtype\b(?!:)", "DTypeLike"), (r"\bList\[", "list["), (r"\bDict\[", "dict["),
    (r"\bTuple\[", "tuple["), (r"\bobject\b", "Any"), (r"\bhandle\b", "Any"),
    (r"\bfunction\b", "Callable[..., Any]"), (r"\biterable\b", "Any"), (r"\bcapsule\b", "Any"),
    (r"\*args\b", "*args: Any"), (r"\*\*kwargs\b", "**kwargs: Any"),
]
SIGNATURE = re.compile(r"^(\w+)\((.*)\) -> (.+)$", re.M)


def translate(text):
    for old, new in WORDS:
        text = re.sub(old, new, text)
    return re.sub(r" = (?!\.\.\.)[^,()\[\]]*(?:\([^)]*\)|\[[^\]]*\])?", " = ...", text)


def signatures(item, name):
    """(parameters, result) of every overload."""
    found = [(translate(args), translate(result))
             for n, args, result in SIGNATURE.findall(item.__doc__ or "") if n in (name, "__init__")]
    return list(dict.fromkeys(found)) or [("*args: Any, **kwargs: Any", "Any")]


def write_function(item, name, indent=""):
    found = signatures(item, name)
    if len(found) > 1:
        found = [("self, *args: Any, **kwargs: Any" if indent else "*args: Any, **kwargs: Any",
                  "Any")]
    args, result = found[0]
    if indent and not args.startswith("self"):
        args = re.sub(r"^\w+(: [\w.\[\], ]+?)?(?=,|$)", "self", args, count=1)
    elif indent:
        args = re.sub(r"^self: [^,]+", "self", args)
    note = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    return f"{indent}def {name}({args}) -> {result}: ...{note}"


def method_lines(cls):
    """The lines of every method, by name; those that no longer fit the base class are marked."""
    found = {}
    for name, item in vars(cls).items():
        if inspect.isroutine(item) or hasattr(item, "__func__"):
            found[name] = write_function(item, name, "    ")
    for base in cls.__mro__[1:]:
        for name in found.keys() & vars(base).keys():
            there = vars(base)[name]
            same = (not inspect.isroutine(there) or name.startswith("__")
                    or write_function(there, name, "    ") == found[name])
            if not same and "type: ignore" not in found[name]:
                found[name] += "  # type: ignore[override]"
    return found


def write_class(cls):
    bases = [b.__name__ for b in cls.__bases__ if b.__name__ not in ("object", "pybind11_object")]
    lines = [f"class {cls.__name__}({', '.join(bases)}):" if bases else f"class {cls.__name__}:"]
    methods = method_lines(cls)
    for name, item in sorted(vars(cls).items()):
        if keyword.iskeyword(name) or name in ("__doc__", "__module__", "__hash__", "__weakref__"):
            continue
        if isinstance(item, property):
            lines += [f"    @property\n    def {name}(self) -> Any: ..."]
            if item.fset:
                lines += [f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ..."]
        elif (cls.__name__, name) == ("Module", "update"):
            lines += ["    update: Callable[..., Any]"]  # models choose their arguments
        elif isinstance(item, staticmethod):
            lines += ["    @staticmethod\n" + write_function(item, name, "    ")]
        elif name == "__init__":
            lines += ["    def __init__(self, *args: Any, **kwargs: Any) -> None: ..."]
        elif name in methods:
            lines += [methods[name]]
        elif not name.startswith("_"):
            lines += [f"    {name}: Any"]
    return "\n".join(lines if len(lines) > 1 else [lines[0] + " ..."])


def in_base_order(classes):
    return sorted(classes, key=lambda c: (len(c.__mro__), c.__name__))


def core_stub(core):
    classes = dict.fromkeys(c for c in vars(core).values() if inspect.isclass(c))
    parts = [write_class(c) for c in in_base_order(classes)]
    parts += [f"{name} = {c.__name__}" for name, c in sorted(vars(core).items())
              if inspect.isclass(c) and name != c.__name__]
    for name, item in sorted(vars(core).items()):
        if inspect.isbuiltin(item):
            parts.append(write_function(item, name))
        elif inspect.ismodule(item):
            parts.append(f"{name}: Any")
    return CORE_HEAD + "__version__: str\n\n" + "\n\n".join(parts) + "\n"


def nn_stub(nn, core):
    names = [n for n in nn.__all__ if hasattr(core, n)]
    text = HEAD + "from ._core import (\n" + "".join(f"    {n} as {n},\n" for n in names)
    text += ")\nfrom ._core import Value as _Value\n\n"
    own = [getattr(nn, n) for n in nn.__all__ if not hasattr(core, n)]
    bases = [c for c in own if c.__name__ in ("Neuron", "Synapse")]
    layers = [c for c in own if c not in bases]
    parts = [
        "class Neuron(Module):\n    @property\n    def size(self) -> tuple[int, ...]: ...\n"
        "    def get_spike(self) -> _Value: ...\n    def add_current(self, current: Any) -> None: ..."
        "\n    def add_delta(self, delta: Any) -> None: ...",
        "class Synapse(Module):\n    @property\n    def output(self) -> _Value: ...\n"
        "    @classmethod\n    def desc(cls, *args: Any, **kwargs: Any) -> Any: ...\n"
        "    def add_delta(self, x: Any) -> None: ..."]
    for cls in dict.fromkeys(layers):
        signature = cls.__doc__.split("\n")[0][len(cls.__name__) + 1:-1]
        arguments = [re.sub(r"=.*", ": Any = ...", a) if "=" in a else
                     (a + ": Any") for a in re.split(r", (?![^()]*\))", signature) if a]
        parts.append(f"class {cls.__name__}({cls.__bases__[0].__name__}):\n"
                     f"    def __init__({', '.join(['self', *arguments])}) -> None: ...")
    parts.append("ValinaRNNCell = VanillaRNNCell")
    parts.append("def reset_all_states(model: Module, batch_size: Optional[int] = None) -> Module:"
                 " ...")
    return text + "\n\n".join(parts) + "\n"


OPTIMIZER_TYPES = {"True": "bool", "False": "bool", "None": "Any"}


def optimizers_stub(core, optimizers):
    parts = []
    for name in optimizers.__all__:
        given = (a.split("=") for a in core._optimizer_signature(name)[1:-1].split(", "))
        arguments = [f"{a}: {OPTIMIZER_TYPES.get(default, 'float')} = ..." for a, default in given]
        parts.append(f"def {name}({', '.join(arguments)}) -> Optimizer: ...")
    return HEAD + "from ._core import Optimizer\n\n" + "\n\n".join(parts) + "\n"


def main():
    import braintrace_cpp  # noqa: F401
    from braintrace_cpp import _core, _optimizers, nn

    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    (out / "_core.pyi").write_text(core_stub(_core))
    (out / "nn.pyi").write_text(nn_stub(nn, _core))
    (out / "_optimizers.pyi").write_text(optimizers_stub(_core, _optimizers))


if __name__ == "__main__":
    main()
