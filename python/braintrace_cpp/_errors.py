# SPDX-License-Identifier: Apache-2.0
"""What the library raises: one class per kind of mistake, all of them UserError."""


class UserError(Exception):
    """The caller can fix it. The message names the function, the rule and the value found."""


class UserValueError(UserError, ValueError):
    """A value that the function does not accept."""


class UserTypeError(UserError, TypeError):
    """A value of the wrong kind."""


class UserNotImplementedError(UserError, NotImplementedError):
    """Something that could exist and does not."""


class NotSupportedError(UserError, NotImplementedError):
    """Something that the method rules out."""


class UserRuntimeError(UserError, RuntimeError):
    """A call at the wrong time."""


class CompilationError(UserError, RuntimeError):
    """A model that cannot be compiled for online learning."""


class InternalError(Exception):
    """A defect of the library; please report it."""
