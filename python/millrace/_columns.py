"""The X of an estimator, whatever holds it, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import importlib
import math
import numbers
import os
from typing import Any, Optional

import numpy as np

from . import _frames

# By these other programs mean in files that there is no value; in a column of text each of them may be a word.
_MISSING = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None", "\\N", "?")


def readable(X: Any) -> Any:
    """X, or the table of what comes lazily or in parts: columns are looked at before they are trained."""
    kind = (type(X).__module__.split(".")[0], type(X).__name__)
    if kind == ("polars", "LazyFrame"):
        return X.collect()
    if kind == ("pyarrow", "RecordBatch"):
        return importlib.import_module("pyarrow").Table.from_batches([X])
    if kind[0] == "pyarrow" and hasattr(X, "read_all"):
        return X.read_all()
    if kind[0] == "pyarrow" and hasattr(X, "to_table"):
        return X.to_table()
    return X


def table_of(X: Any, what: str) -> Mapping[str, Any]:
    """Columns by name: of an array x0, x1 and so on."""
    if type(X).__module__.startswith("scipy.sparse"):
        raise TypeError("%s: sparse data was passed, and dense data is required; X.toarray() makes an array of it" % what)
    if isinstance(X, (str, os.PathLike)):
        raise TypeError("%s: a data frame, a dict of arrays or an array, not the path %r: pandas.read_parquet reads one, and Job.fit takes it" % (
            what, os.fspath(X)))
    if isinstance(X, dict):
        return X
    if has_names(X):
        return {name: X[name] for name in _frames.columns_of(X)}
    if hasattr(X, "iloc") and len(X.shape) == 2:
        return {"x%d" % at: X.iloc[:, at] for at in range(X.shape[1])}
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError("%s: Complex data not supported" % what)
    if array.ndim != 2:
        raise ValueError("%s: expected 2D array, got %dD array instead. Reshape your data: array.reshape(-1, 1) for one column, "
                         "array.reshape(1, -1) for one row" % (what, array.ndim))
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError("%s: Found array with %d sample(s) and %d feature(s) (shape=%s) while a minimum of 1 is required." % (
            what, array.shape[0], array.shape[1], array.shape))
    return {"x%d" % at: _plain(array[:, at]) for at in range(array.shape[1])}


def with_columns(X: Any, columns: Mapping[str, Any], more: Mapping[str, Any]) -> Any:
    """The table X, whose `columns` are these, with more of them; a frame stays one, so that it is read where it lies."""
    if not has_names(X) or isinstance(X, dict):
        return dict(columns, **more)
    if not more:
        return X
    if hasattr(X, "assign"):
        return X.assign(**more)
    if hasattr(X, "append_column"):
        for name, values in more.items():
            X = X.append_column(name, [values])
        return X
    if type(X).__module__.startswith("polars"):
        polars = importlib.import_module("polars")  # it is there already; who checks types need not have it
        return X.with_columns(*(polars.Series(name, values) for name, values in more.items()))
    return dict(columns, **more)


def has_names(X: Any) -> bool:
    """Whether its columns have names, all of them texts."""
    if _frames.is_series(X) or not (isinstance(X, dict) or hasattr(X, "columns") or hasattr(X, "column_names") or _frames.is_frame(X)):
        return False
    return all(isinstance(name, str) for name in _frames.columns_of(X))


def _plain(values: np.ndarray) -> np.ndarray:
    """A column of objects that are all numbers, as numbers."""
    if values.dtype.kind != "O":
        return values
    try:
        return values.astype(np.float64) if not any(isinstance(one, str) for one in values) else values
    except (TypeError, ValueError):
        return values


def kind_of(values: Any) -> str:
    """"number", "time" or "word"."""
    type_name = str(getattr(values, "type", None) or getattr(values, "dtype", None) or np.asarray(values).dtype).lower()
    if type_name == "object":
        present = [one for one in np.asarray(values, dtype=object).tolist() if not is_missing(one)]
        if present and all(isinstance(one, numbers.Number) for one in present):
            return "number"
        return "time" if present and all(hasattr(one, "isoformat") for one in present) else "word"
    if type_name.startswith(("int", "uint", "float", "double", "decimal", "bool", "halffloat")):
        return "number"
    return "time" if type_name.startswith(("datetime", "timestamp", "date")) else "word"


def is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def middle(values: Any) -> Optional[float]:
    """What stands for numbers that are missing: the median; None where all are, and infinite where one is."""
    array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if array.dtype.kind == "O":
        array = np.array([np.nan if is_missing(one) else float(one) for one in array.tolist()])
    array = array.astype(np.float64)
    if np.isinf(array).any():
        return math.inf
    array = array[np.isfinite(array)]
    return float(np.median(array)) if len(array) else None


def rows_of(columns: Mapping[str, Any]) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def rows_at(X: Any, rows: np.ndarray) -> Any:
    """The rows of X of these numbers, held as X is."""
    if isinstance(X, dict):
        return {name: _values_at(values, rows) for name, values in X.items()}
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "column_names"):
        return X.take(rows)
    if has_names(X):
        return X[rows]
    return np.asarray(X)[rows]


def _values_at(values: Any, rows: np.ndarray) -> Any:
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if isinstance(values, (list, tuple)):
        return [values[row] for row in rows]
    return values.take(rows) if hasattr(values, "take") else np.asarray(values)[rows]


def words_of(values: Any) -> Optional[set[str]]:
    """The different texts of a column; None where its values are something else, lists for example."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            values = getattr(values, name)()
            break
    try:
        words = {one for one in values if not is_missing(one)}
    except TypeError:
        return None
    return words if all(isinstance(one, str) for one in words) else None


def missing_words(words: Sequence[Optional[set[str]]]) -> list[str]:
    """Texts that may stand in files for values that are missing: none that is a word of a column itself. `words` has those of
    each; None: not known."""
    known = [one for one in words if one is not None]
    return [] if len(known) < len(words) else [text for text in _MISSING if not any(text in one for one in known)]
