"""Values that are cut into sequences: what a variable of lod_level 1, or a sparse slot, is fed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Optional, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _checks, _millrace
from .errors import ConfigError
from .framework import CPUPlace

__all__ = ["LoDTensor", "create_lod_tensor"]


class LoDTensor:
    """Values end to end, and how many of them each row has. Made by create_lod_tensor."""

    def __init__(self, values: np.ndarray, lengths: NDArray[np.int64]) -> None:
        self._values, self._lengths = values, lengths

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """[[2, 3]]: the first row has two values, the second one three."""
        return [self._lengths.tolist()]

    def lod(self) -> list[list[int]]:
        """[[0, 2, 5]]: where the rows begin, and where the last one ends."""
        return [_offsets(self._lengths).tolist()]

    def shape(self) -> list[int]:
        """Sizes of the values."""
        return list(self._values.shape)

    def __array__(self, dtype: Optional[DTypeLike] = None, copy: Optional[bool] = None) -> np.ndarray:
        return self._values if dtype is None else self._values.astype(dtype)

    def __repr__(self) -> str:
        return "LoDTensor(%d rows of %d values, %s)" % (len(self._lengths), len(self._values), self._values.dtype)


def create_lod_tensor(data: ArrayLike, recursive_seq_lens: Iterable[Iterable[SupportsIndex]],
                      place: Optional[CPUPlace] = None) -> LoDTensor:
    """A LoDTensor: `data` holds the values end to end, or a list of them for each row, and recursive_seq_lens, [[2, 3]], how many
    each row has."""
    if place is not None:
        _checks.one_of("create_lod_tensor: place", place, CPUPlace)
    levels = _checks.listed("create_lod_tensor: recursive_seq_lens", recursive_seq_lens, "lists, as in [[2, 3]]")
    if len(levels) != 1:
        raise ConfigError("create_lod_tensor: recursive_seq_lens is one list of lengths, [[2, 3]]; %d are given" % len(levels))
    lengths = np.array([_checks.whole("create_lod_tensor: a length of recursive_seq_lens", length, 0) for length in _checks.listed(
        "create_lod_tensor: recursive_seq_lens", levels[0], "lengths")], dtype=np.int64)
    _checks.unmasked("create_lod_tensor: data", data)
    if isinstance(data, (list, tuple)) and data and all(isinstance(row, (list, tuple)) for row in data):
        if [len(row) for row in data] != lengths.tolist():
            raise ConfigError("create_lod_tensor: recursive_seq_lens is %s, but the rows of data have %s values" % (
                [lengths.tolist()], [len(row) for row in data]))
        data = [value for row in data for value in row]
    values = _checks.whole_array(data)
    if values.ndim == 0 or int(lengths.sum()) != len(values):
        raise ConfigError("create_lod_tensor: recursive_seq_lens sums to %d, and there are %d values" % (
            lengths.sum(), len(values) if values.ndim else 1))
    return LoDTensor(values, lengths)


def _cut(what: str, given: Any, convert: Callable[[Any, Optional[int]], np.ndarray], width: int = 1,
         are_ids: Optional[bool] = None) -> tuple[np.ndarray, NDArray[np.int64]]:
    """(values end to end, offsets of the rows) of a LoDTensor, an array [rows] or [rows, k], or a list or tuple with values for
    each row. `convert(values, row)` makes an array of the slot's type; row is None where it gets those of all rows. A value has
    `width` numbers. are_ids: whether the type is uint64, or float32; None: another one."""
    if width == 1 and are_ids is not None:
        plain = _millrace.cut_rows(given, are_ids)
        if plain is not None:
            return plain
    _checks.unmasked(what, given)
    if isinstance(given, LoDTensor):
        values = convert(given._values, None)
        return values, _offsets(given._lengths)
    if isinstance(given, np.ndarray) and given.dtype != object and given.ndim:
        values = convert(given, None)
        rows = len(values)
        return values.reshape(-1), np.arange(rows + 1, dtype=np.int64) * (values.size // max(rows, 1))
    if isinstance(given, (str, bytes)) or not np.iterable(given):
        raise ConfigError("%s: a list with a sequence for each row, an array or a LoDTensor, not %r" % (what, given))
    parts = [_row(what, convert(values, row), row, width) for row, values in enumerate(given)]
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    return np.concatenate(parts) if parts else convert([], None), _offsets(lengths)


def _row(what: str, values: np.ndarray, row: int, width: int) -> np.ndarray:
    """The values of a row as [k], or [k, width]. Lengths that were meant as such, (values, [[2, 1]]), are no row."""
    count = len(values) if values.ndim else 1
    if values.size and values.size != count * width:
        raise ConfigError("%s: row %d has the shape %s, and a sequence is %s; values with lengths are create_lod_tensor(values, "
                          "[lengths])" % (what, row, list(values.shape), "[k, %d]" % width if width > 1 else "[k] or [k, 1]"))
    return values.reshape(-1) if width == 1 else values.reshape(-1, width)


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
