"""How parameters start. A value depends on the program's seed, the parameter's name and its place alone."""

__all__ = ["Constant", "Uniform", "Normal", "Xavier", "ConstantInitializer",
           "UniformInitializer", "NormalInitializer", "XavierInitializer"]

from .errors import ConfigError


class _Initializer:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return "initializer(%s)" % self.text


def Constant(value=0.0):
    """Every value the same."""
    return _Initializer("constant: %r" % float(value))


def Uniform(low=-1.0, high=1.0):
    """Uniform in [low, high), where low is -high."""
    if low != -high:
        raise ConfigError("Uniform(%r, %r): the range must be symmetric, low = -high" % (low, high))
    return _Initializer("uniform: %r" % float(high))


def Normal(loc=0.0, scale=1.0):
    """Normal with mean 0 and the deviation `scale`."""
    if loc != 0:
        raise ConfigError("Normal(%r, %r): the mean must be 0" % (loc, scale))
    return _Initializer("normal: %r" % float(scale))


def Xavier(uniform=True):
    """Glorot and Bengio: sqrt(6 / (fan_in + fan_out)) either way, or normal with sqrt(2 / (fan_in + fan_out))."""
    return _Initializer("xavier: true" if uniform else "xavier_normal: true")


ConstantInitializer = Constant
UniformInitializer = Uniform
NormalInitializer = Normal
XavierInitializer = Xavier
