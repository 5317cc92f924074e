"""Rows of a columnar file for the programs, which start this for data_desc { name: "parquet" } (src/datafeed/cell_records.h)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
import importlib
import io
import itertools
import os
import sys
from typing import Any, BinaryIO, Optional

_ROWS = 8192


def main(form: str, what: str, asked: Sequence[str]) -> int:
    """Reads a file of Parquet ("parquet"), or of Arrow's IPC as a file or a stream ("arrow"), on standard input, and writes to
    standard output the texts of some columns ("cells"), or the names and types of all ("names"). Of cells are asked the rule of
    texts, the file that trained first, and each column with its type there, or "". What to exit with."""
    from .errors import DataError
    try:
        from . import _millrace
        from ._frames import with_zones
        pyarrow, ipc, parquet = map(importlib.import_module, ("pyarrow", "pyarrow.ipc", "pyarrow.parquet"))
    except ImportError as error:
        return _fail(os.EX_CONFIG, "files of %s are read by pyarrow and numpy, and %s lacks one of them (%s): pip install pyarrow "
                     "numpy, or let MILLRACE_PYTHON name a Python that has them and millrace" % (form, sys.executable, error))
    source = sys.stdin.buffer
    if not source.seekable():
        source = io.BytesIO(source.read())
    try:
        columns = asked[2::2]
        parts = _parts(source, form, columns, pyarrow, ipc, parquet)
        no_rows = next(parts)
        if what == "names":
            empty = _empty_of_parquet(source, parquet) if form == "parquet" else _empty_of(parts, no_rows.schema.names)
            sys.stdout.buffer.write(b"".join(b"%s\0%s\0" % (one.name.encode(), b"" if one.name in empty or _type_of(one) == "null" else _type_of(one).encode())
                                             for one in no_rows.schema))
            return 0
        types = dict(zip(columns, asked[3::2]))
        for part in itertools.chain([no_rows], parts):
            _check_types(part, int(asked[0]), asked[1], types)
            part, units = with_zones(part)
            frame = _millrace.Frame.of_stream(part.__arrow_c_stream__(), "the file", units)
            sys.stdout.buffer.write(frame.cell_records(columns, int(asked[0])))
        sys.stdout.buffer.flush()
    except DataError as error:
        return _fail(os.EX_DATAERR, error)
    except BrokenPipeError:
        raise
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        return _fail(os.EX_DATAERR, "pyarrow cannot read it as a file of %s: %s; data_desc.name, or predictor's --format, says "
                     "what it is" % (form, error))
    return 0


def _type_of(field: Any) -> str:
    """Of the values of a column, be they in lists or a dictionary."""
    kind = field.type
    while hasattr(kind, "value_type"):
        kind = kind.value_type
    return str(kind)


def _texts_of(kind: str, rule: int) -> Optional[str]:
    """What tells apart the texts that values of a type become; those of whole numbers and texts are alike. None: it has none."""
    if kind.startswith(("int", "uint", "bool", "string", "large_string", "binary", "large_binary", "fixed_size_binary")):
        return "words"
    if kind.startswith("decimal"):
        return "words" if kind.endswith(", 0)") else kind.rpartition(",")[2]
    if kind in ("halffloat", "float", "double"):
        return "floats"
    if kind.startswith(("timestamp", "date64")) or (rule > 1 and kind.startswith("date32")):
        return "times"  # at midnight they are dates
    return "dates" if kind.startswith("date32") else None


def _empty_of_parquet(source: BinaryIO, parquet: Any) -> set[str]:
    """The columns of which the file's statistics say that they have no value."""
    file = parquet.ParquetFile(source)
    about, names = file.metadata, sorted(file.schema_arrow.names, key=len, reverse=True)  # which may have dots themselves
    groups = [about.row_group(at) for at in range(about.num_row_groups)]
    empty = set()
    for at in range(about.num_columns):
        chunks = [group.column(at) for group in groups]
        if all(chunk.num_values == 0 or (chunk.statistics is not None and chunk.statistics.null_count == chunk.num_values)
               for chunk in chunks):
            path = about.schema.column(at).path + "."
            empty.add(next(name for name in names if path.startswith(name + ".")))
    return empty


def _empty_of(parts: Iterable[Any], names: Iterable[str]) -> set[str]:
    """The columns that have no value in the first parts."""
    empty = set(names)
    for part in itertools.islice(parts, 128):
        empty -= {name for name, column in zip(part.schema.names, part.columns) if column.null_count < len(part)}
        if not empty:
            break
    return empty


def _check_types(part: Any, rule: int, first: str, types: dict[str, str]) -> None:
    """Refuses a column with values that has other texts than it has in training. `types` loses those that were looked at."""
    from .errors import DataError
    for field, column in zip(part.schema, part.columns):
        if field.name not in types or column.null_count == len(part):
            continue
        here, there = _type_of(field), types.pop(field.name)
        texts = {_texts_of(here, rule), _texts_of(there, rule)}
        if len(texts) == 1 or None in texts:
            continue
        example, advice = (", as 5.0 and 5", '; pandas makes floats of whole numbers where some are missing, and astype("Int64") keeps '
                           'them') if "floats" in texts else ("", "")
        raise DataError('column "%s" is of type %s, and where the training began, with "%s", of type %s: the same id would be two words%s. '
                        'Write it with one type in all files%s' % (field.name, here, first, there, example, advice))


def _fail(code: int, error: object) -> int:
    print(error, file=sys.stderr)
    return code


def _parts(source: BinaryIO, form: str, columns: Sequence[str], pyarrow: Any, ipc: Any, parquet: Any) -> Iterator[Any]:
    """Tables of some rows, the first one of none."""
    if form == "parquet":
        rows = parquet.ParquetFile(source, page_checksum_verification=True)
        schema = rows.schema_arrow
        batches = rows.iter_batches(_ROWS, columns=[name for name in columns if name in schema.names])
    else:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        rows = ipc.open_file(source) if is_file else ipc.open_stream(source)
        schema = rows.schema
        batches = (rows.get_batch(i) for i in range(rows.num_record_batches)) if is_file else iter(rows)
    # Of all columns, so that what is said of one that lacks can name the nearest.
    yield schema.empty_table()
    for batch in batches:
        yield pyarrow.Table.from_batches([batch])

