# SPDX-License-Identifier: Apache-2.0
"""Projections as brainstate writes them: synapse and output are described, and projections with
the same description share one synapse on the neuron they feed."""
from . import _core, nn
from ._errors import NotSupportedError, UserTypeError


class Description:
    """A call that is made later, by the projection."""

    def __init__(self, make, name, args, kwargs):
        self.make, self.name, self.args, self.kwargs = make, name, args, kwargs

    def __call__(self):
        return self.make(*self.args, **self.kwargs)

    def __repr__(self):
        given = [_text(a) for a in self.args]
        given += [f"{name}={_text(a)}" for name, a in sorted(self.kwargs.items())]
        return f"{self.name}({', '.join(given)})"


def _text(value):
    """Equal for equal arguments; of what is not plain, only for the same object."""
    plain = (bool, int, float, str, type(None), _core.init.Initializer)
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_text(v) for v in value)})"
    return repr(value) if isinstance(value, plain) else f"<{type(value).__name__} {id(value)}>"


class Described:
    """A function with `desc`, as the classes of brainstate have."""

    def __init__(self, make):
        self._make, self.__name__, self.__doc__ = make, make.__name__, make.__doc__

    def __call__(self, *args, **kwargs):
        return self._make(*args, **kwargs)

    def desc(self, *args, **kwargs):
        """The call, for a projection to make."""
        return Description(self._make, self.__name__, args, kwargs)


def _aligned(post, syn, out):
    """The synapse of that description on the neuron, made by the first projection."""
    known = post.__dict__.setdefault("_described", {})
    key = f"{syn!r},{out!r}"
    if key not in known:
        synapse, output = syn(), out() if isinstance(out, Description) else out
        kinds = [kind for kind, *_ in known.values()]
        kind = (type(synapse).__name__, output.name)
        label = f"AlignPost[{key}]" if kind in kinds else ""
        made = nn.AlignPost(post, synapse, output, label=label)
        known[key] = (kind, made, syn, out)  # what is told apart by its id must stay
    return known[key][1]


def align_post_proj(*pre, comm, syn, out, post, **others):
    """comm(x) becomes input of the synapse `syn.desc(...)` of the neuron `post`, whose current is
    that of `out`; projections with equal descriptions share one."""
    if pre or others:
        what = "populations in front" if pre else f"'{next(iter(others))}'"
        raise NotSupportedError(f"AlignPostProj: takes no {what} here; it has comm, syn, out and "
                                "post, and is called with the spikes")
    if isinstance(syn, nn.Synapse):
        name = type(syn).__name__
        raise NotSupportedError(
            f"AlignPostProj: syn={name}(...) would be run by the projection, not by the neuron; "
            f"give syn={name}.desc(...), or braintrace_cpp.nn.AlignPost(post, synapse, output)")
    if not isinstance(syn, Description):
        raise UserTypeError(f"AlignPostProj: syn must be a description, for example "
                            f"Expon.desc(n, tau=10.0), got {syn!r}")
    if not isinstance(out, (Description, _core.SynapseOutput)):
        raise UserTypeError(f"AlignPostProj: out must be a description, for example "
                            f"CUBA.desc(), got {out!r}")
    if not isinstance(post, nn.Neuron):
        raise UserTypeError(f"AlignPostProj: post must be a neuron, got {post!r}")
    return nn.AlignPostProj(comm, _aligned(post, syn, out))


NAMES = {"AlignPostProj": align_post_proj,
         **{name: Described(getattr(nn, name)) for name in ("CUBA", "COBA", "MgBlock")}}
