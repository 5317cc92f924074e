"""Rows in memory, as callers have them, become frames that C++ reads without Python."""

from __future__ import annotations

import glob
import importlib
import os
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Optional

import numpy as np

from . import _millrace
from .errors import ConfigError, DataError, MillraceWarning, NotFoundError

_TAKEN = ("a data frame of pandas, polars or pyarrow, whatever else has __arrow_c_stream__, a dict of arrays or lists by column, Parquet "
          "files (.parquet), or an iterable of these")
_PARQUET = (".parquet", ".pq")
_OF_NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")

# The format, the values and which of them are missing, as _millrace.Frame.of_columns takes them.
_Given = tuple[str, Any, Optional[np.ndarray]]

# Follows the unit of times with a zone that models from before zones were kept have as instants, not as clock times.
_INSTANT = "Z"

# The formats of Arrow for numbers of numpy, by kind and bytes.
_FORMATS = {"i1": "c", "i2": "s", "i4": "i", "i8": "l", "u1": "C", "u2": "S", "u4": "I", "u8": "L", "f2": "e", "f4": "f",
            "f8": "g", "b1": "C"}


def is_frame(data: Any) -> bool:
    """Whether it has columns with names: predict takes these as raw columns."""
    return hasattr(data, "__arrow_c_stream__") or _is_pandas(data) or _is_structured(data) or (
        isinstance(data, (str, os.PathLike)) and os.fspath(data).endswith(_PARQUET))


def sets_of(data: Any) -> list[tuple[str, Any]]:
    """(name, rows) of each of several tables by name, or of one table, whose name is "". A dict of arrays by column is one."""
    if data is None:
        return []
    if isinstance(data, Mapping) and any(_is_table(rows) for rows in data.values()):
        for name in data:
            if not isinstance(name, str) or not name or set(name) - _OF_NAMES:
                raise ConfigError("eval_data: a name of a set has letters, digits, '_', '-' and '.', not %r" % (name,))
        return list(data.items())
    return [("", data)]


def _is_table(data: Any) -> bool:
    return isinstance(data, (Mapping, str, os.PathLike)) or _is_structured(data) or hasattr(data, "columns") or hasattr(
        data, "column_names")


def warn_of_other_words(numbers: Mapping[str, str], what: str, trained: Mapping[str, str], stacklevel: int = 3) -> None:
    """Warns of columns of a frame whose whole numbers and truth values are other words than in the frame or model that trained.
    `numbers` has "5" or "5.0" by column, "" where it has other words (Frame.whole_numbers of the columns whose texts hash {} and
    vocabulary {} look up), and so has `trained`, or "True". Of columns that are not in that, where they came as floats."""
    for column, text in numbers.items():
        known = trained.get(column)
        if text and known and known.lower() in ("true", "false"):
            warnings.warn('%s: column "%s" holds truth values or whole numbers: its words are "%s", and "%s" in training, so that one '
                          "value is two words: write them alike, or retrain" % (what, column, text, known),
                          MillraceWarning, stacklevel=stacklevel)
            continue
        is_float, was_float = ("." in one or "e" in one.lower() for one in (text, known or ""))
        if not text or known == "" or (known is None and not is_float) or (known and is_float == was_float):
            continue
        advice = '. pandas makes floats of whole numbers where some are missing; astype("Int64") keeps them' if is_float else ""
        found = '%s: column "%s" holds whole numbers%s: its words are "%s", ' % (what, column, " as floats" if is_float else "", text)
        unlike = 'and "%s" in training, so that one number is two words: write them alike, or retrain' % known
        warnings.warn(found + (unlike if known else 'not "%d"' % float(text)) + advice, MillraceWarning, stacklevel=stacklevel)


def frame_of(data: Any, name: str, what: str, wanted: Collection[str] = ()) -> _millrace.Frame:
    """The _millrace.Frame of `data`, which messages call `name`; `what` begins those about what it is. Of columns that are not
    `wanted` (none: all are) values are not looked at, as far as that costs something."""
    if is_series(data):
        raise ConfigError("%s: %s, not a Series: labels and weights are columns of the frame, by the names that the job gives them" % (
            what, _TAKEN))
    data, units = with_zones(data, wanted)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            if _is_pandas(data):
                data, units = _with_zones_of_arrow(data, wanted, units)
            capsule = data.__arrow_c_stream__()
        except (ImportError, TypeError, ValueError):
            # pandas without pyarrow, or with columns that pyarrow does not take.
            if not _is_pandas(data):
                raise
        else:
            return _millrace.Frame.of_stream(capsule, name, units)
    if _is_pandas(data):
        columns = [(column, _of_series(data.iloc[:, at])) for at, column in enumerate(data.columns)]
        return _of_columns(columns, name, what, wanted, units)
    if _is_structured(data):
        return _of_columns([(column, (data[column], None)) for column in data.dtype.names], name, what, wanted)
    if isinstance(data, Mapping):
        return _of_columns([(column, _of_series(values) if is_series(values) else (values, None))
                            for column, values in data.items()], name, what, wanted)
    if isinstance(data, (str, os.PathLike)):
        return _of_parquet(os.fspath(data), name, what, wanted)
    if isinstance(data, (bytes, np.ndarray)) or hasattr(data, "__dlpack__") or not isinstance(data, Iterable):
        raise ConfigError("%s: %s, not %s" % (what, _TAKEN, repr(data) if isinstance(data, (bytes, int, float)) else
                                              "a " + type(data).__name__))
    parts = [frame_of(part, name, "%s: part %d" % (what, at), wanted) for at, part in enumerate(data)]
    if not parts:
        raise ConfigError("%s: no frame came of it" % what)
    return _millrace.Frame.join(parts, name)


def _of_parquet(path: str, name: str, what: str, wanted: Collection[str]) -> _millrace.Frame:
    """The rows of the Parquet files that a path, a pattern or a folder names."""
    if not path.endswith(_PARQUET) and not os.path.isdir(path):
        raise ConfigError("%s: rows, or a file that is called .parquet, not %r; Job.run reads the files of filelist" % (what, path))
    try:
        dataset = importlib.import_module("pyarrow.dataset")
    except ImportError:
        raise ConfigError("%s: Parquet files are read by pyarrow, which is not installed: pip install pyarrow" % what) from None
    files = sorted(glob.glob(path)) if glob.has_magic(path) and not os.path.exists(path) else path
    if not files or (isinstance(files, str) and not os.path.exists(files)):
        raise NotFoundError("%s: no such file: %r" % (what, path))
    try:
        checked = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
        rows = dataset.dataset(files, format=dataset.ParquetFileFormat(default_fragment_scan_options=checked))
        # Without one that is wanted, all are read: the nearest name is then known.
        columns = [column for column in rows.schema.names if column in wanted] if set(wanted) <= set(rows.schema.names) else None
        reader, units = with_zones(rows.scanner(columns=columns or None).to_reader(), wanted)
    except (OSError, ValueError) as error:  # pyarrow's own are of these
        raise DataError("%s: pyarrow cannot read %r as Parquet: %s" % (what, path, error)) from None
    return _millrace.Frame.of_stream(reader.__arrow_c_stream__(), name, units)


def with_zones(data: Any, wanted: Collection[str] = ()) -> tuple[Any, dict[str, str]]:
    """(frame, units): a frame of pandas, polars or pyarrow, or another stream of Arrow, in which times with a zone are texts, what
    clocks show there and the offset from UTC, and the unit of these columns by their names. Only columns that are `wanted` (none:
    all) need be so. Times in lists and dictionaries are, too, but for those of pandas, which frame_of hands to pyarrow."""
    units = {}
    if _is_pandas(data):
        # Of a column with a type of Arrow that has the zone and the unit.
        kinds = [getattr(kind, "pyarrow_dtype", kind) for kind in data.dtypes]
        zoned = [(at, kind) for at, (name, kind) in enumerate(zip(data.columns, kinds))
                 if getattr(kind, "tz", None) is not None and (not wanted or name in wanted)]
        if zoned:
            data = data.copy(deep=False)
            for at, kind in zoned:
                units[data.columns[at]] = kind.unit
                data.isetitem(at, _texts_of_pandas(data.iloc[:, at].astype("datetime64[%s, %s]" % (kind.unit, kind.tz))))
        return data, units
    if type(data).__module__.startswith("polars"):
        return _with_zones_of_polars(data, wanted)
    if not hasattr(data, "__arrow_c_stream__") and not _is_of_arrow(data):
        return data, units
    return _with_zones_of_arrow(data, wanted, {})


def _with_zones_of_polars(data: Any, wanted: Collection[str]) -> tuple[Any, dict[str, str]]:
    polars = importlib.import_module("polars")
    digits = {"ms": 3, "us": 6, "ns": 9}
    units, columns = {}, []
    for name, kind in getattr(data, "schema", {}).items():
        times = getattr(kind, "inner", kind)  # of a list or an array
        if not getattr(times, "time_zone", None) or (wanted and name not in wanted):
            continue
        form = "%%F %%T%%.%df%%:z" % digits[times.time_unit]
        column = polars.col(name)
        if times is kind:
            columns.append(column.dt.strftime(form))
        else:
            lists = column.arr.to_list() if isinstance(kind, polars.Array) else column
            columns.append(lists.list.eval(polars.element().dt.strftime(form)))
        units[name] = times.time_unit + ("" if times is kind else _INSTANT)
    return (data.with_columns(columns) if columns else data), units


def _with_zones_of_arrow(data: Any, wanted: Collection[str], units: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """As with_zones, of a table, batch or reader of pyarrow or of another stream of Arrow; `units` are those of columns that are
    texts already. Lists and dictionaries of times become those of texts."""
    is_of_arrow = _is_of_arrow(data)
    if not is_of_arrow:
        try:
            data = importlib.import_module("pyarrow").RecordBatchReader.from_stream(data)
        except ImportError:  # FrameColumn refuses times with another zone than UTC
            return data, units
    zoned = [at for at, field in enumerate(data.schema) if _zoned(field.type) and (not wanted or field.name in wanted)]
    if zoned and hasattr(data, "read_all"):
        data = data.read_all()
    for at in zoned:
        name, kind = data.schema.field(at).name, data.schema.field(at).type
        units[name] = _zoned(kind).unit + ("" if is_of_arrow and _zoned(kind) is kind else _INSTANT)
        data = data.set_column(at, name, _texts_of_arrow(data.column(at)))
    return data, units


def _is_of_arrow(data: Any) -> bool:
    return type(getattr(data, "schema", None)).__module__.startswith("pyarrow")


def _zoned(kind: Any) -> Any:
    """The type of times with a zone that a type of Arrow is, or has in its lists or dictionary; None for others."""
    while hasattr(kind, "value_type"):
        kind = kind.value_type
    return kind if getattr(kind, "tz", None) else None


def _texts_of_arrow(column: Any) -> Any:
    """Times with a zone, and lists and dictionaries of these, as texts."""
    pyarrow = importlib.import_module("pyarrow")
    if isinstance(column, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([_texts_of_arrow(chunk) for chunk in column.chunks or [pyarrow.array([], column.type)]])
    types, kind = pyarrow.types, column.type
    if types.is_timestamp(kind):
        return importlib.import_module("pyarrow.compute").strftime(column, format="%Y-%m-%d %H:%M:%S%z")
    if types.is_dictionary(kind):
        return pyarrow.DictionaryArray.from_arrays(column.indices, _texts_of_arrow(column.dictionary))
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return column  # FrameColumn refuses it
    values = _texts_of_arrow(column.values)
    if types.is_fixed_size_list(kind):
        made, own = pyarrow.list_(values.type, kind.list_size), 1
    else:
        made, own = (pyarrow.list_ if types.is_list(kind) else pyarrow.large_list)(values.type), 2
    return pyarrow.Array.from_buffers(made, len(column), column.buffers()[:own], offset=column.offset, children=[values])


def _texts_of_pandas(series: Any) -> np.ndarray:
    """Times with a zone as texts; those that are missing are None."""
    clock, utc = series.dt.tz_localize(None).to_numpy(), series.dt.tz_convert(None).to_numpy()
    there = ~np.isnat(clock)
    minutes, which = np.unique((clock - utc)[there] // np.timedelta64(1, "m"), return_inverse=True)
    offsets = np.array(["%s%02d:%02d" % ("-" if one < 0 else "+", *divmod(abs(int(one)), 60)) for one in minutes], dtype=str)
    texts = np.full(len(clock), None, dtype=object)
    if there.any():
        texts[there] = np.char.add(np.datetime_as_string(clock[there]), offsets[which])
    return texts


def columns_of(data: Any) -> list[str]:
    """The names of the columns of what frame_of takes."""
    if isinstance(data, Mapping):
        return list(data)
    if _is_structured(data):
        return list(data.dtype.names)
    names = getattr(data, "column_names", None)
    return list(names if names is not None else data.columns)


def _is_pandas(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "dtypes") and hasattr(data, "columns")


def is_series(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "dtype") and hasattr(data, "isna")


def _is_structured(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.dtype.names is not None


def _of_series(series: Any) -> tuple[np.ndarray, None]:
    """(values, which of them are missing) of a column of pandas."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufM":
        return series.to_numpy(), None
    return series.astype(object).to_numpy(), None


def _of_columns(columns: Iterable[tuple[str, tuple[Any, Optional[np.ndarray]]]], name: str, what: str, wanted: Collection[str],
                units: Optional[dict[str, str]] = None) -> _millrace.Frame:
    given: list[tuple[str, str, Any, Optional[np.ndarray]]] = []
    for column, (values, missing) in columns:
        if not isinstance(column, str):
            raise ConfigError("%s: names of columns are texts, not %r; rename the column" % (what, column))
        if any("\ud800" <= character <= "\udfff" for character in column):
            raise ConfigError("%s: the name of column %s has a surrogate, which UTF-8 cannot encode; rename the column" % (
                what, ascii(column)))
        if wanted and column not in wanted and hasattr(values, "__len__"):
            given.append((column, "n", values, None))
            continue
        given.append((column, *_of_values(values, missing, '%s: column "%s"' % (what, column))))
    return _millrace.Frame.of_columns(given, name, units or {})


def _of_values(values: Any, missing: Optional[np.ndarray], what: str) -> _Given:
    """(format, values, missing) as _millrace.Frame.of_columns takes them."""
    if type(values).__module__.startswith("scipy.sparse"):
        return _of_sparse(values, what)
    if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        values = _of_dlpack(values, what)
    if isinstance(values, (str, bytes, Mapping, np.generic)) or not (hasattr(values, "__len__") or hasattr(values, "__array__")):
        raise ConfigError("%s: an array or a list, one value a row, not %r" % (what, values))
    if isinstance(values, (list, tuple)):
        array = _plain_array(values)
        if array is None:
            return "", values if isinstance(values, list) else list(values), None
    else:
        if np.ma.isMaskedArray(values):
            missing = np.ma.getmaskarray(values)
            values = values.data
        array = np.asarray(values)
    if array.ndim != 1:
        raise ConfigError("%s: one value a row, not an array %s; rows of several values are a list of lists" % (
            what, list(array.shape)))
    if array.dtype.kind == "M":
        return _times(array, missing)
    if array.dtype.kind == "f":
        nan = np.isnan(array)
        missing = nan if missing is None else nan | missing
        missing = missing if missing.any() else None
    code = array.dtype.kind + str(array.dtype.itemsize)
    if code in _FORMATS:
        return _FORMATS[code], np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)), missing
    if array.dtype.kind in "OUS":
        listed = array.tolist() if missing is None else [None if absent else value for value, absent in zip(array.tolist(), missing)]
        return "", listed, None
    raise ConfigError("%s: numbers, texts or times, not %s" % (what, array.dtype))


def _of_sparse(matrix: Any, what: str) -> _Given:
    """A list for each row: the columns in which the matrix has a 1."""
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if rows.nnz and not (rows.data == 1).all():
        raise ConfigError("%s: a sparse matrix is a list of columns for each row, and its values are 1; values such as %r would be "
                          "lost" % (what, rows.data[rows.data != 1][0].item()))
    return "+l", rows.indices.astype(np.int64), rows.indptr.astype(np.int64)


def _of_dlpack(tensor: Any, what: str) -> np.ndarray:
    try:
        return np.from_dlpack(tensor.detach() if hasattr(tensor, "detach") else tensor)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigError("%s: a tensor that numpy does not take: %s; .cpu() brings it to the host" % (what, error)) from None


def _plain_array(values: Sequence[Any]) -> Optional[np.ndarray]:
    """A list of numbers of one kind as an array, of floats some may be missing; None for others, whose values are looked at one by
    one."""
    kinds = set(map(type, values))
    if float in kinds and kinds <= {float, type(None)}:
        return np.array(values, dtype=np.float64)
    if kinds == {bool}:
        return np.array(values)
    if kinds == {int} and values and -2**63 <= min(values) and max(values) < 2**63:
        return np.array(values, dtype=np.int64)
    return None


def _times(array: np.ndarray, missing: Optional[np.ndarray]) -> _Given:
    unit, count = np.datetime_data(array.dtype)
    if unit not in ("s", "ms", "us", "ns") or count != 1:
        unit = "s"
    whole = np.ascontiguousarray(array.astype("datetime64[%s]" % unit)).view(np.int64)
    absent = np.isnat(array) if missing is None else np.isnat(array) | missing
    return "ts%s:" % unit[0], whole, absent if absent.any() else None

