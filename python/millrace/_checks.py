"""What arguments are held to: a ConfigError that says which, what it is and what it should be."""

from __future__ import annotations

from collections.abc import Iterable
import operator
import os
from typing import Any, Optional
import warnings

import numpy as np

from ._types import Path, T
from .errors import ConfigError, DataError, MillraceWarning

# The least and the largest of each dtype of whole numbers.
WHOLE = {"uint8": (0, 255), **{"int%d" % bits: (-2 ** (bits - 1), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)}}


def whole(what: str, given: Any, least: Optional[int] = None) -> int:
    """A whole number, of at least `least`. True is none, though it is an int to Python."""
    try:
        if isinstance(given, bool):
            raise TypeError
        number = operator.index(given)
    except TypeError:
        raise ConfigError("%s: a whole number, not %r" % (what, given)) from None
    if least is not None and number < least:
        raise ConfigError("%s: at least %d, not %d" % (what, least, number))
    return number


def truth(what: str, given: Any) -> bool:
    """A bool, or the 0 or 1 that stands for one; numpy's too."""
    if isinstance(given, (bool, np.bool_)) or is_int(given) and operator.index(given) in (0, 1):
        return bool(given)
    raise ConfigError("%s: True or False, not %r" % (what, given))


def number(what: str, given: Any) -> float:
    """Any number, numpy's too, but no text."""
    unmasked(what, given)
    if not isinstance(given, (str, bytes)):
        try:
            return float(given)
        except (OverflowError, TypeError, ValueError):
            pass
    raise ConfigError("%s: a number, not %r" % (what, given))


def value_of(what: str, given: Any, dtype: str) -> float:
    """A number as a variable of `dtype` holds it: an int for whole numbers, where fractions and what is too large are refused."""
    if dtype not in WHOLE:
        return number(what, given)
    value = exact_int(given)
    if value is None:
        number(what, given)
        raise ConfigError("%s: %s holds whole numbers, not %r; round it, or take float32" % (what, dtype, given))
    least, most = WHOLE[dtype]
    if not least <= value <= most:
        raise ConfigError("%s: %s holds %d to %d, not %d; take a larger type" % (what, dtype, least, most, value))
    return value


def is_int(given: Any) -> bool:
    """Whether it is an int, or one of numpy's."""
    try:
        operator.index(given)
    except TypeError:
        return False
    return True


def exact_int(given: Any) -> Optional[int]:
    """The int that a number is, numpy's too, and a float without fraction; None for any other."""
    if is_int(given):
        return operator.index(given)
    try:
        value = None if isinstance(given, (str, bytes)) else int(given)
    except (OverflowError, TypeError, ValueError):
        return None
    return value if value == given else None


def fits_bits(value: int, bits: int) -> bool:
    """Whether a float with so many bits (float32: 24, float64: 53) holds an int without rounding it."""
    return value == 0 or (abs(value) // (value & -value)).bit_length() <= bits


def float32_of(what: str, given: Any, dtype: str, instead: str) -> float:
    """value_of, where it is handed on as float32; a whole number that this would round is refused with what to do instead."""
    value = value_of(what, given, dtype)
    if dtype in WHOLE and not fits_bits(int(value), 24):
        raise ConfigError("%s: %d is handed on as float32, which rounds it; %s" % (what, value, instead))
    return float(value)


def text(what: str, given: object) -> str:
    """A str."""
    if not isinstance(given, str):
        raise ConfigError("%s: a str, not %r" % (what, given))
    return given


def utf8(what: str, given: str, first: int = 1) -> bytes:
    """The UTF-8 of lines of text. The first line has the number `first`."""
    try:
        return given.encode()
    except UnicodeEncodeError as error:
        before = given[:error.start]
        raise DataError("%s:%d:%d: expected text that UTF-8 can encode, found the surrogate %s" % (
            what, first + before.count("\n"), error.start - before.rfind("\n"), ascii(given[error.start]))) from None


def listed(what: str, given: Iterable[T], of: str) -> list[T]:
    """A list of what `of` says; no text, which is a list to Python."""
    if not isinstance(given, (str, bytes)):
        try:
            return list(given)
        except TypeError:
            pass
    raise ConfigError("%s: a list of %s, not %r" % (what, of, given))


def path(what: str, given: Path) -> str:
    """The name of a file or folder, as a str."""
    try:
        return os.fsdecode(given)
    except TypeError:
        raise ConfigError("%s: a file's name, not %r" % (what, given)) from None


def unmasked(what: str, given: T) -> T:
    """numpy makes arrays of masked ones without a look at their masks: refuses a masked value, in lists, too."""
    masked = np.ma.MaskedArray
    if isinstance(given, masked):
        count = int(np.ma.getmaskarray(given).sum())
        if count:
            raise ConfigError("%s: %d of %d values are masked, and no tensor has a mask; give array.filled(value), or leave "
                              "those rows out" % (what, count, given.size))
    elif isinstance(given, (list, tuple)) or isinstance(given, np.ndarray) and given.dtype == object:
        inner = given if isinstance(given, (list, tuple)) else list(given.flat)
        if any(issubclass(kind, (list, tuple, masked)) for kind in set(map(type, inner))):
            for each in inner:
                unmasked(what, each)
    return given


def whole_array(given: Any, least: int = -2 ** 63) -> np.ndarray:
    """numpy's array of whole numbers. Python's own stay such where some need the 64th bit, of which numpy makes floats; beside such
    a one, none is below `least`."""
    array = np.asarray(given)
    if isinstance(given, np.ndarray) or array.dtype.kind not in "fO":
        return array
    exact = np.array(given, dtype=object)
    if not all(type(number) is int or isinstance(number, np.integer) for number in exact.flat):
        return array
    for number in exact.flat:
        if not -2 ** 63 <= number < 2 ** 64:
            raise OverflowError("%d does not fit 64 bits" % number)
        if number < least:
            raise OverflowError("an id is 0 to 2**64 - 1, and %d is below 0" % number)
    return np.array([int(number) % 2 ** 64 for number in exact.flat], dtype=np.uint64).reshape(exact.shape)


def one_of(what: str, given: object, kind: type[T], article: str = "a") -> T:
    """An object of a class of this package."""
    if not isinstance(given, kind):
        raise ConfigError("%s: %s %s, not %r" % (what, article, kind.__name__, given))
    return given


def ids(what: str, array: np.ndarray, row: Optional[int] = None) -> None:
    """Refuses ids below 0, which a table would take as 2**64 less."""
    if array.dtype.kind != "i" or not array.size or array.min() >= 0:
        return
    place = list(np.argwhere(array < 0)[0])
    value = array[tuple(place)]
    place = place if row is None else [row, *place]
    raise ConfigError("%s: an id is 0 to 2**64 - 1, and %d%s is below 0; leave out what only fills up rows, by a list with "
                      "a sequence for each row, and give ids of 64 bits as .view(numpy.uint64)" % (what, value, _at(place)))


def finite(what: str, values: np.ndarray, offsets: Optional[np.ndarray] = None, refused: Optional[str] = None) -> None:
    """Refuses floats that are no numbers, by `refused`, or warns of them where that is None; `offsets` are those of sequences."""
    if np.isfinite(values).all():
        return
    places = np.argwhere(~np.isfinite(values))
    first = places[0].copy()
    value = values[tuple(first)]
    where = _at(first)
    if offsets is not None:
        row = int(np.searchsorted(offsets, first[0], side="right")) - 1
        where = " (row %d, value %d, from 0)" % (row, first[0] - offsets[row])
    said = "%s: %s%s%s" % (what, value, where, " and %d more that are not finite" % (len(places) - 1) if len(places) > 1 else "")
    advice = "leave such rows out, or give a value for what is missing: numpy.nan_to_num(x, nan=0.0)"
    if refused is not None:
        raise ConfigError("%s, %s; %s" % (said, refused, advice))
    warnings.warn("%s; what is computed of it is nan as well; %s" % (said, advice), MillraceWarning, stacklevel=5)


def _at(place: Iterable[int]) -> str:
    """" (row 3, value 0, from 0)"; "" of a lone number."""
    numbers = [int(number) for number in place]
    if not numbers:
        return ""
    if len(numbers) == 1:
        return " (row %d, from 0)" % numbers[0]
    return " (row %d, value %s, from 0)" % (numbers[0], numbers[1] if len(numbers) == 2 else numbers[1:])
