# SPDX-License-Identifier: Apache-2.0
"""The table of model kinds in docs/nn.md, made from braintrace/nn/models_*.cpp: what the comment
of a model says, and the options its code reads, its helpers' included."""
import re

PIECE = re.compile(r"((?:^//[^\n]*\n)*)^(?:struct (\w+) : Module \{|"
                   r"[\w:<>,* ]+?[ *&](\w+)\([^;{]*\) \{)\n"
                   r"(.*?)^\}", re.S | re.M)
KIND = re.compile(r'\{"(\w+)", (?:make<(\w+)(?:, \w+)?>|(\w+))\}')
READ = re.compile(r'\.(size|number|flag|text|sizes|integers|find|constant|find_constant)\('
                  r'\s*"(\w+)"'
                  r'(?:,\s*([^()]+?))?\)')
IGNORED = re.compile(r"\.ignore\(\{([^}]*)\}")
OWN = ("kind", "constants", "dt_ms")
# Where the comment speaks of something else.
SAID = {"single_rnn": "VanillaRNNCell, Linear", "two_layer_gru": "GRUCell, GRUCell, Linear",
        "conv_rnn": "Conv2d, Flatten, VanillaRNNCell, Linear; x (1, size, size)",
        "linear_rnn": "h' = leak h + tanh(rec([x, h])); y = out(h'), or h' when `layer` is "
                      "GroupedLinear, which takes `groups`",
        "sequential": "layers one after another",
        "lif_net": "LIF neurons, leaky readout. `wiring`: expcu (Linear, Expon, current), delta "
                   "(added to V) or alignpost (Expon aligned to the neuron, CUBA)",
        "alif_net": "as `lif_net`, with ALIF neurons",
        "alif_stack": "as `lif_stack`, with ALIF neurons",
        "conv_in_leaky": "h' = leak h + ci(x)", "conv_rec": "h' = leak h + tanh(ci(x) + ch(h))",
        "tanh_rnn": "h' = tanh(x win + h w), y = h'",
        "plain_and_etp": "h' = tanh(x win + h w), y = h' wout with plain win, wout",
        "while_settle_unrolled": "as `while_settle`, the loop written out"}
# What code that two kinds share reads for one of them only.
NOT_OF = {"lif_net": ("tau_a", "beta"), "lif_stack": ("tau_a", "beta"), "tanh_rnn": ("n_out",),
          "sequential": ("name", "class", "args")}
NAMED_BY_CALLER = re.compile(r'\b(?:image|same_conv)\([^()]*"(c_\w+)"\)')


def pieces(text):
    """Name -> (comment, code) of every model and helper of a file."""
    out = {}
    for comment, struct, function, code in PIECE.findall(text):
        said = " ".join(line[2:].strip() for line in comment.splitlines())
        out[struct or function] = (said, code)
    return out


def closure(name, known, seen):
    """The code of a piece and of the helpers it calls."""
    if name not in known or name in seen:
        return ""
    seen.add(name)
    code = known[name][1]
    called = [n for n in known if n != name and re.search(rf"\b{n}[(>]", code)]
    return code + "".join(closure(n, known, seen) for n in called)


def options(code):
    """(name, default or None) in the order they are read; then names without effect."""
    found = {}
    for kind, name, default in READ.findall(code):
        if default and not re.fullmatch(r"[-\d.]+|true|false|\"\w*\"", default):
            default = "..."  # differs between the kinds that share the code
        shown = f"constants.{name}" if "constant" in kind else name
        if name not in OWN and not found.get(shown):
            found[shown] = default.strip('"')
    for name in NAMED_BY_CALLER.findall(code):
        found.setdefault(name, "")
    ignored = re.findall(r'"(\w+)"', " ".join(IGNORED.findall(code)))
    return found, [name for name in dict.fromkeys(ignored) if name not in found]


def row(kind, said, code):
    found, ignored = options(code)
    found = {name: value for name, value in found.items() if name not in NOT_OF.get(kind, ())}
    said = re.sub(r"  +", " ", said)
    shown = [f"`{name}` = {value}" if value else f"`{name}`" for name, value in found.items()]
    if ignored:
        shown.append("without effect: " + ", ".join(f"`{name}`" for name in ignored))
    return f"| `{kind}` | {said.replace('|', '/') or '-'} | {', '.join(shown) or '-'} |"


def table(root):
    rows = []
    for path in sorted((root / "braintrace/nn").glob("models_*.cpp")):
        text = path.read_text()
        known = pieces(text)
        for kind, model, function in KIND.findall(text):
            name = model or function
            code = closure(name, known, set())
            rows.append(row(kind, SAID.get(kind, known[name][0]), code))
    head = ("Every kind `build_model` knows, with the options it takes beside `dt_ms`; most are "
            "small models of recorded\nruns. An option without a default must be given, = ... has "
            "one of its kind; `constants.x` is an\narray under `\"constants\"`: "
            "`{\"x\": {\"shape\": [2], \"data\": [50, 60]}}`.\n\n"
            "| kind | equation of a step, or parts | options |\n|---|---|---|\n")
    return head + "\n".join(sorted(rows)) + "\n"
