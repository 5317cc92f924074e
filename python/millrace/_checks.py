"""What arguments are held to: a ConfigError that says which, what it is and what it should be."""

import operator
import os

from .errors import ConfigError


def whole(what, given, least=None):
    """A whole number, of at least `least`."""
    try:
        number = operator.index(given)
    except TypeError:
        raise ConfigError("%s: a whole number, not %r" % (what, given)) from None
    if least is not None and number < least:
        raise ConfigError("%s: at least %d, not %d" % (what, least, number))
    return number


def number(what, given):
    """Any number, numpy's too, but no text."""
    if not isinstance(given, (str, bytes)):
        try:
            return float(given)
        except (TypeError, ValueError):
            pass
    raise ConfigError("%s: a number, not %r" % (what, given))


def text(what, given):
    """A str."""
    if not isinstance(given, str):
        raise ConfigError("%s: a str, not %r" % (what, given))
    return given


def listed(what, given, of):
    """A list of what `of` says; no text, which is a list to Python."""
    if not isinstance(given, (str, bytes)):
        try:
            return list(given)
        except TypeError:
            pass
    raise ConfigError("%s: a list of %s, not %r" % (what, of, given))


def path(what, given):
    """The name of a file or folder, as a str."""
    try:
        return os.fsdecode(given)
    except TypeError:
        raise ConfigError("%s: a file's name, not %r" % (what, given)) from None


def whole_array(given):
    """numpy's array of whole numbers. Python's own stay such where some need the 64th bit, of which numpy makes floats."""
    import numpy as np
    array = np.asarray(given)
    if isinstance(given, np.ndarray) or array.dtype.kind not in "fO":
        return array
    exact = np.array(given, dtype=object)
    if not all(type(number) is int or isinstance(number, np.integer) for number in exact.flat):
        return array
    for number in exact.flat:
        if not -2 ** 63 <= number < 2 ** 64:
            raise OverflowError("%d does not fit 64 bits" % number)
    return np.array([int(number) % 2 ** 64 for number in exact.flat], dtype=np.uint64).reshape(exact.shape)


def one_of(what, given, kind, article="a"):
    """An object of a class of this package."""
    if not isinstance(given, kind):
        raise ConfigError("%s: %s %s, not %r" % (what, article, kind.__name__, given))
    return given
