#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The reference of braintrace/nn in docs/nn.md, made from the comments of the headers.

Usage: docs_nn_reference.py ROOT writes it anew below its mark. docs_programs.py checks that it is
what the headers say.
"""
import re
import sys
from pathlib import Path

import docs_models_reference

MARK = "<!-- Below: tests/docs_nn_reference.py, from the headers. -->\n"
# Headers in the order of the page; those without a place here follow under "Building blocks".
PARTS = {
    "Linear layers": ["linear", "signed_linear", "scaled_linear", "sparse_linear", "grouped_linear",
                      "lora", "embedding", "connections"],
    "Convolution and pooling": ["conv", "pooling"],
    "Recurrent cells": ["vanilla_rnn", "gru", "mgu", "cfn", "lstm", "urlstm", "minimal_rnn",
                        "mini_gru", "mini_lstm", "lru"],
    "Readouts": ["readout"],
    "Neurons": ["neuron", "lif", "synaptic_lif", "nonlinear_if", "exp_if", "qua_if", "gif",
                "izhikevich", "hh"],
    "Synapses": ["synapse", "synapse_output"],
    "Projections": ["projection"],
    "Norms": ["norm", "batch_norm"],
    "Activations": ["activation", "activation_layers", "surrogate"],
}
CLASS = re.compile(r"((?:^//[^\n]*\n)*)(?:^template [^\n]*\n)?^class (\w+)", re.M)
ALIAS = re.compile(r"((?:^//[^\n]*\n)*)^using ([A-Z]\w*) = ([A-Z]\w*)[^;]*;"
                   r"(?: *// ([^\n]*))?", re.M)
OPTIONS = r"^struct {}Options {{\n(.*?)^}};"


def headers(root):
    return {p.stem: p.read_text() for p in sorted((root / "braintrace/nn").glob("*.h"))
            if not p.stem.endswith("_impl")}


def options_of(name, text):
    body = re.search(OPTIONS.format(name), text, re.S | re.M)
    if not body:
        return []
    lines = [line.strip() for line in body.group(1).splitlines()]
    return [line for line in lines if " = " in line and "static" not in line]


def entries(text):
    """A part of the page per class, with what its comment says, and a list of other names."""
    for comment, name in CLASS.findall(text):
        yield f"### {name}\n"
        said = [line[3:] for line in comment.splitlines()]
        options = options_of(name, text)
        block = said + ([""] if said and options else []) + options
        if block:
            yield "".join(f"    {line}".rstrip() + "\n" for line in block)
    for comment, name, base, note in ALIAS.findall(text):
        options = options_of(name, text)
        if not comment and not options:
            yield f"* `{name}`: a `{base}`" + (f" ({note})" if note else "")
            continue
        yield f"### {name}\n\nFrom `{base}`.\n"
        block = [line[3:] for line in comment.splitlines()] + options
        yield "".join(f"    {line}".rstrip() + "\n" for line in block)


def reference(root):
    left = headers(root)
    out = []
    for title, names in [*PARTS.items(), ("Building blocks", None)]:
        out.append(f"## {title}\n")
        for name in names or list(left):
            found = list(entries(left.pop(name)))
            out += found + [""] if found and found[-1].startswith("*") else found
    out.append("\n## Kinds of models\n")
    out.append(docs_models_reference.table(root))
    return "\n".join(out).rstrip() + "\n"


def complaint(root):
    page = (root / "docs/nn.md").read_text()
    if page.partition(MARK)[2] == reference(root):
        return None
    return "docs/nn.md is not what the headers say: run tests/docs_nn_reference.py ."


if __name__ == "__main__":
    tree = Path(sys.argv[1])
    document = tree / "docs/nn.md"
    document.write_text(document.read_text().partition(MARK)[0] + MARK + reference(tree))
