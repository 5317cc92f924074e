"""How parameters start. A value depends on the program's seed, the parameter's name and its place alone."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from . import _checks
from ._rules import Initializer
from .errors import ConfigError

__all__ = ["Constant", "Uniform", "Normal", "Xavier", "NumpyArrayInitializer", "ConstantInitializer",
           "UniformInitializer", "NormalInitializer", "XavierInitializer"]

_MOST_VALUES = 1 << 28  # of an array that a program holds: 1 GiB


def Constant(value: SupportsFloat = 0.0) -> Initializer:
    """Every value the same."""
    return Initializer("constant: %r" % float(value))


def Uniform(low: float = -1.0, high: float = 1.0) -> Initializer:
    """Uniform in [low, high), where low is -high."""
    if low != -high:
        raise ConfigError("Uniform(%r, %r): the range must be symmetric, low = -high" % (low, high))
    return Initializer("uniform: %r" % float(high))


def Normal(loc: float = 0.0, scale: SupportsFloat = 1.0) -> Initializer:
    """Normal with mean 0 and the deviation `scale`."""
    if loc != 0:
        raise ConfigError("Normal(%r, %r): the mean must be 0" % (loc, scale))
    return Initializer("normal: %r" % float(scale))


def Xavier(uniform: bool = True) -> Initializer:
    """Glorot and Bengio: sqrt(6 / (fan_in + fan_out)) either way, or normal with sqrt(2 / (fan_in + fan_out))."""
    return Initializer("xavier: true" if uniform else "xavier_normal: true")


def NumpyArrayInitializer(value: ArrayLike) -> Initializer:
    """These values, an array of the parameter's shape, which the startup program holds."""
    array = np.asarray(_checks.unmasked("NumpyArrayInitializer", value))
    if array.dtype.kind not in "biuf" or not array.size:
        raise ConfigError("NumpyArrayInitializer: an array of numbers, not %s %s" % (array.dtype, list(array.shape)))
    if array.size > _MOST_VALUES:
        raise ConfigError("NumpyArrayInitializer: a program holds up to %d values, not %d; set them after the startup program has "
                          "run: scope.set(name, array)" % (_MOST_VALUES, array.size))
    made = Initializer("constant: 0.0")
    made._values = np.array(array, dtype=np.float32, order="C")
    if not np.isfinite(made._values).all():
        raise ConfigError("NumpyArrayInitializer: %d of %d values are nan or infinite, or too large for float32" % (
            (~np.isfinite(made._values)).sum(), array.size))
    return made


ConstantInitializer = Constant
UniformInitializer = Uniform
NormalInitializer = Normal
XavierInitializer = Xavier
