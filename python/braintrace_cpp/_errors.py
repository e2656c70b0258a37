# SPDX-License-Identifier: Apache-2.0
"""What the library raises: one class per kind of mistake, all of them UserError."""


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
