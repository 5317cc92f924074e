"""Scores rows with a saved model."""

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
    width: int  #: values per row of a dense slot; 0 for a sparse slot
    is_needed: bool  #: whether the score depends on the slot


class Predictor:
    """A model saved by a run (OUTPUT_DIR/model) or by Paddle's save_inference_model.

        scores = millrace.Predictor("out/model").predict({"dense": x, "C1": [[7], [8, 9]]})   # float32, [rows]

    Scores equal those of the program `predictor`. If the model was trained without zeros in sparse slots (zeros: DROP), zeros
    in lines and columns are dropped, and a MillraceWarning reports how many. Any number of threads can share one object.

    A model with several losses returns one score per loss: [rows, losses]. `predictions` lists the names of the losses.
    """

    def __init__(self, folder: Path, feed: Union[str, Iterable[str]] = "offline", prediction: str = "",
                 data_desc: Optional[str] = None) -> None:
        """Loads the model in `folder`. `feed` is "offline" (ids, as in training), "online" (the pooled embeddings that the model
        was saved with), or a list of program variables to feed as dense slots instead of computing them. `prediction` selects a
        prediction of a Paddle model, or one of several losses. `data_desc`, a DataFeedDesc as text, replaces the model's."""
        folder = _checks.path("Predictor: folder", folder)
        given = [] if isinstance(feed, str) else [_checks.text("Predictor: feed", one) for one in _checks.listed(
            "Predictor: feed", feed, 'variables\' names, "offline" or "online"')]
        fed = "offline" if given else _checks.text("Predictor: feed", feed)
        self._given = (os.path.abspath(folder), given or feed, prediction, data_desc)
        self._predictor = _millrace.Predictor(folder, fed, given, prediction, data_desc)
        self._seen = _seen(self._given[0])  # after loading, which rejects a pipe or a device before it is opened
        for warning in self._predictor.warnings():
            warnings.warn(warning, MillraceWarning, stacklevel=2)
        self.slots = [Slot(s["name"], s["type"], s["is_dense"], s["width"], s["is_needed"])
                      for s in self._predictor.slots()]
        #: Names of the score columns: losses, or the only variable, with the class ("y[0]") for more than two classes.
        self.predictions = self._predictor.predictions()
        self._by_name = {slot.name: slot for slot in self.slots}
        self._words = self._predictor.word_columns()
        self._trained = self._predictor.whole_numbers()
        self._warned: set[str] = set()

    def __reduce__(self) -> tuple[Callable[..., Predictor], tuple[Any, ...]]:
        """Pickles the folder's path, for example for a process pool; unpickling loads the model again. Unpickling raises
        ConfigError if the model has changed since."""
        return _reloaded, (*self._given, self._seen)

    def predict_lines(self, lines: Union[str, bytes, bytearray, Iterable[Union[str, bytes]]],
                      without: Union[str, Iterable[str]] = ()) -> NDArray[np.float32]:
        """Scores MultiSlot lines: a str or bytes of whole lines, or an iterable of lines. Returns float32 [rows], or [rows,
        predictions] for several losses or more than two classes.

        A model whose features read CSV, JSON lines or libsvm accepts raw lines in the training format, starting with the header
        if the files have one.
        Lines are parsed directly: the model's pipe_command does not run. Blank lines are skipped. `without` lists slots
        missing from the lines, for example the label. A malformed line raises DataError with its line number.
        A MillraceWarning reports scores that are not finite, and string columns that write numbers or booleans differently
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
        """Scores rows in memory. Returns float32 [rows], or [rows, predictions] for several losses or more than two classes.

        A model whose features read columns accepts raw columns, like Job.fit: a pandas, polars or pyarrow data frame, or a
        dict of arrays or lists keyed by column. Columns used only for the label can be omitted, and extra columns are
        ignored. Use `by_slot=True` to pass per-slot values to such a model.

        Other models accept a dict of values keyed by slot.
        For a dense slot of width w, pass an array [rows, w], or [rows] if w is 1. For a sparse slot, pass a list with one
        sequence of values per row, an array [rows] or [rows, k] (k values per row), or create_lod_tensor(values, [lengths]):
        concatenated values and the number of values per row. Ids range from 0 to 2**64 - 1. Floats that are not
        finite cause a MillraceWarning. Slots that do not affect a score can be omitted.
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
        """Returns the scores and warns if some are not finite."""
        odd = np.flatnonzero(~np.isfinite(scores))
        if odd.size:
            warnings.warn("%d of %d scores are not finite; the first: %s of row %d (rows count from 0)" % (
                odd.size, scores.size, scores.flat[odd[0]], odd[0] // len(self.predictions)), MillraceWarning, stacklevel=3)
        return scores

    def _left_out(self, name: str) -> Slot:
        """Returns the slot for a name in `without`. If the name is a column, the error lists the slots that read it."""
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
    """Fingerprints the model in a folder or with a prefix: the content of MODEL if it exists, else file sizes and times."""
    try:
        with open(os.path.join(folder, "MODEL"), "rb") as file:
            return [file.read()]
    except OSError:
        pass
    parent, prefix = (folder, "") if os.path.isdir(folder) else os.path.split(folder)
    names = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
    paths = [os.path.join(parent, name) for name in names if name.startswith(prefix)]
    found = [(path, os.stat(path)) for path in paths if os.path.exists(path)]  # skips dangling links
    return [(os.path.basename(path), stat.st_size, stat.st_mtime_ns) for path, stat in found]


def _reloaded(folder: str, feed: Union[str, Iterable[str]], prediction: str, data_desc: Optional[str],
              seen: list[Any]) -> Predictor:
    """Loads the model when unpickling."""
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
    """Returns (concatenated values of the slot's type, offsets or None, rows)."""
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
