"""Scores from a saved model."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from . import _checks, _millrace
from .errors import ConfigError

__all__ = ["Predictor", "Slot"]


class Slot(NamedTuple):
    """A column of a model's input lines."""

    name: str
    dtype: str  #: "uint64" (ids) or "float"
    is_dense: bool
    width: int  #: values in every row of a dense slot; 0 of a sparse one
    is_needed: bool  #: a score depends on it


class Predictor:
    """A model that a run saved (OUTPUT_DIR/model), or one of Paddle's save_inference_model.

        scores = millrace.Predictor("out/model").predict({"dense": x, "C1": [[7], [8, 9]]})   # float32, [rows]

    Scores are those of the program `predictor`. Any number of threads may use one object.
    """

    def __init__(self, folder, feed="offline", prediction="", data_desc=None):
        """`feed` is "offline" (ids, as in training) or "online" (pooled embeddings); `prediction` chooses among several
        that a model of Paddle returns; `data_desc`, a DataFeedDesc as text, stands for the model's own."""
        self._predictor = _millrace.Predictor(_checks.path("Predictor: folder", folder), feed, prediction, data_desc)
        self.slots = [Slot(s["name"], s["type"], s["is_dense"], s["width"], s["is_needed"])
                      for s in self._predictor.slots()]

    def predict_lines(self, lines, without=()):
        """Scores lines of MultiSlot text: a str or bytes of whole lines, or an iterable of lines. float32, [rows].

        They are parsed as they are: the model's pipe_command is not run. Blank lines are passed over. `without` names
        slots that the lines lack, for example the label. A line that does not parse is a DataError with its number.
        """
        if isinstance(lines, (bytes, bytearray)):
            text = bytes(lines)
        elif isinstance(lines, str):
            text = lines.encode()
        else:
            text = b"\n".join(_line(line) for line in _checks.listed("predict_lines: lines", lines, "lines, or a str"))
        without = [without] if isinstance(without, str) else list(without)
        for name in without:
            slot = self._slot(name)
            if slot.is_needed:
                raise ConfigError('without: the score depends on slot "%s"' % name)
        return self._predictor.score_text(text, without)

    def predict(self, columns):
        """Scores rows given as a dict, by slot. float32, [rows].

        A dense slot of width w takes an array [rows, w], or [rows] where w is 1. A sparse slot takes a list with a
        sequence of values for each row, an array [rows] or [rows, k] (k values in every row), or a pair
        (values, lengths) of arrays: values end to end, and how many of them each row has. Slots that no score depends
        on may be left out.
        """
        if not isinstance(columns, Mapping):
            raise ConfigError("predict: a dict of values by slot, not %r" % (columns,))
        for name in columns:
            self._slot(name)
        missing = [slot.name for slot in self.slots if slot.is_needed and slot.name not in columns]
        if missing:
            raise ConfigError("the score depends on slots that are not there: " + ", ".join(missing))
        rows, given = None, []
        for slot in self.slots:
            if not slot.is_needed:
                continue
            try:
                values, offsets, count = _column(slot, columns[slot.name])
            except ConfigError:
                raise
            except (OverflowError, TypeError, ValueError) as error:
                raise ConfigError('slot "%s": %s' % (slot.name, error)) from None
            if rows is not None and count != rows[1]:
                raise ConfigError('slot "%s" has %d rows, but slot "%s" has %d' % (slot.name, count, rows[0], rows[1]))
            rows = rows or (slot.name, count)
            given.append((slot.name, values, offsets))
        return self._predictor.score_columns(given, rows[1] if rows else 0)

    def _slot(self, name):
        for slot in self.slots:
            if slot.name == name:
                return slot
        raise ConfigError('the model has no slot "%s"; it has: %s' % (name, ", ".join(s.name for s in self.slots)))


def _line(given):
    if isinstance(given, bytes):
        return given.rstrip(b"\n")
    return _checks.text("predict_lines: a line", given).rstrip("\n").encode()


def _column(slot, given):
    """(values of the slot's type end to end, offsets or None, rows)."""
    if slot.is_dense:
        values = _values(slot, given)
        rows = values.shape[0] if values.ndim else 1
        if values.size != rows * slot.width:
            raise ConfigError('slot "%s" is dense with %d values a row: give an array [rows, %d], not %s' % (
                slot.name, slot.width, slot.width, list(values.shape)))
        return values.reshape(-1), None, rows
    if isinstance(given, tuple) and len(given) == 2:
        values, lengths = _values(slot, given[0]).reshape(-1), np.asarray(given[1], dtype=np.int64).reshape(-1)
    elif isinstance(given, np.ndarray) and given.dtype != object:
        values = _values(slot, given)
        rows = values.shape[0]
        lengths = np.full(rows, values.size // max(rows, 1), dtype=np.int64)
        values = values.reshape(-1)
    else:
        parts = [_values(slot, row).reshape(-1) for row in given]
        lengths = np.array([len(part) for part in parts], dtype=np.int64)
        values = np.concatenate(parts) if parts else _values(slot, [])
    if (lengths < 0).any() or int(lengths.sum()) != values.size:
        raise ConfigError('slot "%s": lengths must not be negative and must sum to the %d values; they sum to %d' % (
            slot.name, values.size, int(lengths.sum())))
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return values, offsets, len(lengths)


def _values(slot, given):
    if slot.dtype == "float":
        array = np.asarray(given)
        if array.size and array.dtype.kind not in "biuf":
            raise ConfigError('slot "%s" holds floats; give numbers, not %s' % (slot.name, array.dtype))
        return np.ascontiguousarray(array, dtype=np.float32)
    array = _checks.whole_array(given)
    if array.size and array.dtype.kind not in "iu":
        raise ConfigError('slot "%s" holds ids; give integers, not %s' % (slot.name, array.dtype))
    return np.ascontiguousarray(array).astype(np.uint64, copy=False)
