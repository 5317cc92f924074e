"""Scores from a saved model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
import os
from typing import Any, NamedTuple, Optional, Union

import numpy as np
from numpy.typing import NDArray

from . import _checks, _frames, _millrace
from ._types import Path, Rows, Scored
from .errors import ConfigError, MillraceWarning
from .lod_tensor import _cut

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

    Scores are those of the program `predictor`. Where the model was trained without zeros of sparse slots (zeros: DROP),
    they are left out of lines and columns alike, and a MillraceWarning says how many. Any number of threads may use one object.

    A model of several losses scores a row by each: scores are [rows, losses], and `predictions` has the losses' names.
    """

    def __init__(self, folder: Path, feed: Union[str, Iterable[str]] = "offline", prediction: str = "",
                 data_desc: Optional[str] = None) -> None:
        """`feed` is "offline" (ids, as in training), "online" (the pooled embeddings that the model was saved with), or a list of
        variables of the program that are fed in place of what computes them, dense slots here; `prediction` chooses among several
        that a model of Paddle returns, or the one of several losses by its name; `data_desc`, a DataFeedDesc as text, stands for the model's own."""
        folder = _checks.path("Predictor: folder", folder)
        given = [] if isinstance(feed, str) else [_checks.text("Predictor: feed", one) for one in _checks.listed(
            "Predictor: feed", feed, 'variables\' names, "offline" or "online"')]
        fed = "offline" if given else _checks.text("Predictor: feed", feed)
        self._given = (os.path.abspath(folder), given or feed, prediction, data_desc)
        self._predictor = _millrace.Predictor(folder, fed, given, prediction, data_desc)
        self._seen = _seen(self._given[0])  # behind the loading, which refuses a pipe or a device before it is opened
        for warning in self._predictor.warnings():
            warnings.warn(warning, MillraceWarning, stacklevel=2)
        self.slots = [Slot(s["name"], s["type"], s["is_dense"], s["width"], s["is_needed"])
                      for s in self._predictor.slots()]
        #: Names of the columns of scores: of the losses, or the one variable; of more than two classes with the class, "y[0]".
        self.predictions = self._predictor.predictions()
        self._by_name = {slot.name: slot for slot in self.slots}
        self._words = self._predictor.word_columns()
        self._trained = self._predictor.whole_numbers()
        self._warned: set[str] = set()

    def __reduce__(self) -> tuple[Callable[..., Predictor], tuple[Any, ...]]:
        """For pickle, and so for processes of a pool: the folder's path, from which the model is loaded again. One that has
        changed since this one was loaded is refused there."""
        return _reloaded, (*self._given, self._seen)

    def predict_lines(self, lines: Union[str, bytes, bytearray, Iterable[Union[str, bytes]]],
                      without: Union[str, Iterable[str]] = ()) -> NDArray[np.float32]:
        """Scores lines of MultiSlot text: a str or bytes of whole lines, or an iterable of lines. float32, [rows], of several
        losses or more than two classes [rows, predictions].

        A model whose features read CSV, JSON lines or libsvm takes such lines, raw as they were trained on, with the header
        first where files have one.
        They are parsed as they are: the model's pipe_command is not run. Blank lines are passed over. `without` names
        slots that the lines lack, for example the label. A line that does not parse is a DataError with its number.
        A MillraceWarning says that scores are not finite, or that a column of words writes numbers or truth values otherwise
        than in training (5.0 for 5, True for 1).
        """
        if isinstance(lines, (bytes, bytearray)):
            text = bytes(lines)
        elif isinstance(lines, str):
            text = _checks.utf8("lines", lines)
        else:
            given = _checks.listed("predict_lines: lines", lines, "lines, or a str")
            text = b"\n".join(_line(line, number) for number, line in enumerate(given, 1))
        without = [without] if isinstance(without, str) else list(without)
        for name in without:
            slot = self._left_out(name)
            if slot.is_needed:
                raise ConfigError('without: the score depends on slot "%s"' % name)
        return self._finite(self._told(self._predictor.score_text(text, without), "predict_lines"))

    def predict(self, columns: Rows,
                by_slot: bool = False) -> NDArray[np.float32]:
        """Scores rows in memory. float32, [rows], of several losses or more than two classes [rows, predictions].

        A model whose features make slots of columns takes these raw, as Job.fit does: a data frame of pandas, polars or
        pyarrow, or a dict of arrays or lists by column. Columns that only the label needs may be left out, others count for
        nothing. `by_slot=True` gives such a model values by slot.

        Other models take a dict of values by slot.
        A dense slot of width w takes an array [rows, w], or [rows] where w is 1. A sparse slot takes a list with a
        sequence of values for each row, an array [rows] or [rows, k] (k values in every row), or
        create_lod_tensor(values, [lengths]): values end to end, and how many of them each row has. Ids are 0 to 2**64 - 1;
        floats that are not finite are a MillraceWarning. Slots that no score depends on may be left out.
        """
        if self._predictor.has_features() and not by_slot and (isinstance(columns, Mapping) or _frames.is_frame(columns)):
            without = [slot.name for slot in self.slots if not slot.is_needed]
            frame = _frames.frame_of(columns, "rows", "predict", self._predictor.columns(without))
            _frames.warn_of_other_words(frame.whole_numbers(self._words), "predict", self._trained)
            return self._finite(self._told(self._predictor.score_frame(frame, without), "predict"))
        if not isinstance(columns, Mapping):
            shape = getattr(columns, "shape", None)
            if self._predictor.has_features() and not by_slot and shape is None:
                raise ConfigError("predict: a data frame, or a dict of columns (arrays or lists), not a %s" % type(columns).__name__)
            raise ConfigError("predict: a dict of values by slot, not %s" % (
                repr(columns) if shape is None else "an array %s; the score depends on %s" % (
                    list(shape), ", ".join(slot.name for slot in self.slots if slot.is_needed))))
        for name in columns:
            self._slot(name)
        rows, given = None, []
        for slot in self.slots:
            if not slot.is_needed or slot.name not in columns:
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
        missing = [slot.name for slot in self.slots if slot.is_needed and slot.name not in columns]
        if missing:
            raise ConfigError("the score depends on slots that are not there: " + ", ".join(missing))
        return self._told(self._predictor.score_columns(given, rows[1] if rows else 0), "predict")

    def _told(self, scored: Scored, what: str) -> NDArray[np.float32]:
        scores, zeros_dropped, found = scored
        for once, warning in found.items():
            if once not in self._warned:
                self._warned.add(once)
                warnings.warn("%s: %s" % (what, warning), MillraceWarning, stacklevel=3)
        if zeros_dropped:
            warnings.warn("%d zeros of sparse slots were left out, as in training (zeros: DROP)" % zeros_dropped,
                          MillraceWarning, stacklevel=3)
        return scores

    def _finite(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The scores, with a warning where some are not finite."""
        odd = np.flatnonzero(~np.isfinite(scores))
        if odd.size:
            warnings.warn("%d of %d scores are not finite; the first: %s of row %d (rows count from 0)" % (
                odd.size, scores.size, scores.flat[odd[0]], odd[0] // len(self.predictions)), MillraceWarning, stacklevel=3)
        return scores

    def _left_out(self, name: str) -> Slot:
        """The slot of `without`; of a name that is a column's, names the slots that are made of it."""
        if name not in self._by_name and self._predictor.has_features():
            readers = [slot for slot in self.slots
                       if name in self._predictor.columns([other.name for other in self.slots if other is not slot])]
            needed = [slot.name for slot in readers if slot.is_needed]
            if needed:
                raise ConfigError('without: the score depends on column "%s", of which slot "%s" is made' % (name, needed[0]))
            if readers:
                raise ConfigError('without: the model has no slot "%s", but a column, which without=%s leaves out' % (
                    name, [slot.name for slot in readers]))
        return self._slot(name)

    def _slot(self, name: object) -> Slot:
        if isinstance(name, str) and name in self._by_name:
            return self._by_name[name]
        raise ConfigError('the model has no slot "%s"; it has: %s' % (name, ", ".join(s.name for s in self.slots)))


def _seen(folder: str) -> list[Any]:
    """What tells the model of a folder, or of a prefix, from another one: our own by what MODEL says of all files."""
    try:
        with open(os.path.join(folder, "MODEL"), "rb") as file:
            return [file.read()]
    except OSError:
        pass
    parent, prefix = (folder, "") if os.path.isdir(folder) else os.path.split(folder)
    names = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
    paths = [os.path.join(parent, name) for name in names if name.startswith(prefix)]
    found = [(path, os.stat(path)) for path in paths if os.path.exists(path)]  # a link may lead nowhere
    return [(os.path.basename(path), stat.st_size, stat.st_mtime_ns) for path, stat in found]


def _reloaded(folder: str, feed: Union[str, Iterable[str]], prediction: str, data_desc: Optional[str],
              seen: list[Any]) -> Predictor:
    """What pickle calls."""
    predictor = Predictor(folder, feed, prediction, data_desc)
    if predictor._seen != seen:
        raise ConfigError('the model in "%s" is another one than the Predictor was pickled with; load the new one by '
                          "millrace.Predictor(folder)" % folder)
    return predictor


def _line(given: object, number: int) -> bytes:
    if isinstance(given, bytes):
        return given.rstrip(b"\n")
    return _checks.utf8("lines", _checks.text("predict_lines: a line", given).rstrip("\n"), number)


def _column(slot: Slot, given: Any) -> tuple[np.ndarray, Optional[NDArray[np.int64]], int]:
    """(values of the slot's type end to end, offsets or None, rows)."""
    if slot.is_dense:
        values = _values(slot, _checks.unmasked('slot "%s"' % slot.name, given))
        rows = values.shape[0] if values.ndim else 1
        if values.size != rows * slot.width:
            raise ConfigError('slot "%s" is dense with %d values a row: give an array [rows, %d], not %s' % (
                slot.name, slot.width, slot.width, list(values.shape)))
        if slot.dtype == "float":
            _checks.finite('slot "%s"' % slot.name, values.reshape(rows, slot.width))
        return values.reshape(-1), None, rows
    what = 'slot "%s"' % slot.name
    values, offsets = _cut(what, given, lambda part, row: _values(slot, part, row), are_ids=slot.dtype != "float")
    values = values.reshape(-1)
    if offsets[-1] != values.size:
        raise ConfigError("%s: values are a column; the LoDTensor has %d for lengths that sum to %d" % (
            what, values.size, offsets[-1]))
    if slot.dtype == "float":
        _checks.finite(what, values, offsets)
    return values, offsets, len(offsets) - 1


def _values(slot: Slot, given: Any, row: Optional[int] = None) -> np.ndarray:
    if slot.dtype == "float":
        array = np.asarray(given)
        if array.size and array.dtype.kind not in "biuf":
            raise ConfigError('slot "%s" holds floats; give numbers, not %s' % (slot.name, array.dtype))
        return np.ascontiguousarray(array, dtype=np.float32)
    array = _checks.whole_array(given, 0)
    if array.size and array.dtype.kind not in "iu":
        raise ConfigError('slot "%s" holds ids; give integers, not %s' % (slot.name, array.dtype))
    _checks.ids('slot "%s"' % slot.name, array, row)
    return np.ascontiguousarray(array).astype(np.uint64, copy=False)
