# SPDX-License-Identifier: Apache-2.0
"""Optimisers by name. All take clip_norm, clip_value, schedule and manual_schedule too."""
from ._core import Optimizer


def SGD(*args, **kwargs):
    """SGD(lr=0.001, momentum=0, nesterov=False, weight_decay=0).

    >>> SGD(0.1).learning_rate
    0.1
    """
    return Optimizer("SGD", *args, **kwargs)


def Adam(*args, **kwargs):
    """Adam(lr=0.001, beta1=0.9, beta2=0.999, eps=1e-08, weight_decay=0, amsgrad=False).

    >>> Adam(lr=0.01).learning_rate
    0.01
    """
    return Optimizer("Adam", *args, **kwargs)


def AdamW(*args, **kwargs):
    """Adam with weight_decay=0.01 added to the step.

    >>> AdamW().learning_rate
    0.001
    """
    return Optimizer("AdamW", *args, **kwargs)


def RMSprop(*args, **kwargs):
    """RMSprop(lr=0.01, alpha=0.99, eps=1e-08, momentum=0, centered=False, weight_decay=0).

    >>> RMSprop().learning_rate
    0.01
    """
    return Optimizer("RMSprop", *args, **kwargs)


def Lion(*args, **kwargs):
    """Lion(lr=0.0001, beta1=0.9, beta2=0.99, weight_decay=0).

    >>> Lion().learning_rate
    0.0001
    """
    return Optimizer("Lion", *args, **kwargs)


__all__ = ["SGD", "Adam", "AdamW", "Lion", "RMSprop"]
