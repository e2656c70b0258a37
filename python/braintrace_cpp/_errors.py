# SPDX-License-Identifier: Apache-2.0
"""What the library raises: one class per kind of mistake, all of them UserError."""
import re


class UserError(Exception):
    """The caller can fix it. The message names the function, the rule and the value found.

    >>> import braintrace_cpp as bt
    >>> try:
    ...     bt.zeros('a')
    ... except bt.UserError as error:
    ...     print('caught')
    caught
    """


class UserValueError(UserError, ValueError):
    """A value that the function does not accept.

    >>> import braintrace_cpp as bt
    >>> try:
    ...     bt.compile(bt.nn.GRUCell(3, 4), 'nothing', bt.zeros(3))
    ... except bt.UserValueError as error:
    ...     print('caught')
    caught
    """


class UserTypeError(UserError, TypeError):
    """A value of the wrong kind.

    >>> import braintrace_cpp as bt
    >>> try:
    ...     bt.zeros('a')
    ... except bt.UserTypeError as error:
    ...     print('caught')
    caught
    """


class UserNotImplementedError(UserError, NotImplementedError):
    """Something that could exist and does not.

    >>> import braintrace_cpp as bt
    >>> try:
    ...     bt.nn.Module()(bt.zeros(3))
    ... except bt.UserNotImplementedError as error:
    ...     print('caught')
    caught
    """


class NotSupportedError(UserError, NotImplementedError):
    """Something that the method rules out.

    >>> import braintrace_cpp as bt
    >>> issubclass(bt.NotSupportedError, NotImplementedError)
    True
    """


class UserRuntimeError(UserError, RuntimeError):
    """A call at the wrong time.

    >>> import braintrace_cpp as bt
    >>> try:
    ...     bt.D_RTRL(bt.nn.GRUCell(3, 4)).report
    ... except bt.UserRuntimeError as error:
    ...     print('caught')
    caught
    """


class CompilationError(UserError, RuntimeError):
    """A model that cannot be compiled for online learning.

    >>> import braintrace_cpp as bt
    >>> try:
    ...     bt.compile(bt.nn.Linear(3, 4), bt.D_RTRL, bt.zeros(3))
    ... except bt.CompilationError as error:
    ...     print('caught')
    caught
    """


class InternalError(Exception):
    """A defect of the library; please report it.

    >>> import braintrace_cpp as bt
    >>> issubclass(bt.InternalError, bt.UserError)
    False
    """


def _short(value):
    """repr, cut to a line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _refusal(text, args, kwargs):
    """The message for a call whose arguments are of the wrong kind. pybind11's `text` has the
    name and, numbered, what the function takes; for values within an argument, their type."""
    given = [*map(_short, args), *(f"{k}={_short(v)}" for k, v in (kwargs or {}).items())]
    if "(): incompatible " not in text:
        return text if "; got (" in text else f"{text}; got ({', '.join(given)})"
    name = text.split("(): incompatible ", 1)[0]
    noise = r"braintrace(_cpp\.(_core\.)?|::)|<object object at [^>]*>"
    takes = [re.sub(noise, "", t).split(" -> ")[0]
             for t in re.findall(r"^    \d+\. (.*)$", text, re.M)]
    if name == "__init__":  # "Value(data: object, ...)"; args are without the new object
        name = takes[0].split("(")[0].split(".")[-1]
        takes = [t[t.index("("):] for t in takes]
    elif takes and takes[0].startswith("(self: "):
        name = f"{type(args[0]).__name__}.{name}"
        takes, given = [re.sub(r"\(self: [^,)]*(, )?", "(", t) for t in takes], given[1:]
    return f"{name.lstrip('_')}: takes {' or '.join(takes)}, got ({', '.join(given)})"
