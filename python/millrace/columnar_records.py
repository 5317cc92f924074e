"""Rows of a columnar file for the programs, which start this for data_desc { name: "parquet" } (src/datafeed/cell_records.h)."""

import importlib
import io
import sys

_ROWS = 8192


# As in src/core/subprocess.h: what is wrong stands on standard error.
_BAD_DATA = 65
_INVALID_CONFIG = 78


def main(form, what, columns):
    """Reads a file of Parquet ("parquet"), or of Arrow's IPC as a file or a stream ("arrow"), on standard input, and writes to
    standard output the texts of its columns ("cells"), or the names of all ("names"). What to exit with."""
    from . import _millrace
    from ._frames import local_times
    from .errors import DataError
    try:
        pyarrow, ipc, parquet = map(importlib.import_module, ("pyarrow", "pyarrow.ipc", "pyarrow.parquet"))
    except ImportError as error:
        return _fail(_INVALID_CONFIG, "files of %s are read by pyarrow, which %s lacks (%s): pip install pyarrow, or let "
                     "MILLRACE_PYTHON name a Python that has it and millrace" % (form, sys.executable, error))
    source = sys.stdin.buffer
    if not source.seekable():
        source = io.BytesIO(source.read())
    try:
        parts = _parts(source, form, columns, pyarrow, ipc, parquet)
        if what == "names":
            sys.stdout.buffer.write(b"".join(name.encode() + b"\0" for name in next(parts).schema.names))
            return 0
        for part in parts:
            frame = _millrace.Frame.of_stream(local_times(part).__arrow_c_stream__(), "the file")
            sys.stdout.buffer.write(frame.cell_records(columns))
        sys.stdout.buffer.flush()
    except DataError as error:
        return _fail(_BAD_DATA, error)
    except BrokenPipeError:
        raise
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        return _fail(_BAD_DATA, "pyarrow cannot read it as a file of %s: %s; data_desc.name, or predictor's --format, says what it is"
                     % (form, error))
    return 0


def _fail(code, error):
    print(error, file=sys.stderr)
    return code


def _parts(source, form, columns, pyarrow, ipc, parquet):
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

