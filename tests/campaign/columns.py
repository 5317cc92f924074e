#!/usr/bin/env python3
"""The same typed rows as Parquet, Arrow, and frames of pandas, polars and pyarrow: what meaning.py needs libraries for.

    columns.py write ROWS.json FOLDER        FOLDER/rows.parquet, FOLDER/rows.arrow
    columns.py score MODEL ROWS.json         scores of each library's frame by millrace.Predictor, as JSON
"""

import datetime
import decimal
import json
import sys

import pyarrow
import pyarrow.feather
import pyarrow.parquet


def type_of(kind):
    """pyarrow's type of a kind as meaning.py writes it: "int64", "timestamp us Asia/Tokyo", "list string"."""
    first, *rest = kind.split(" ")
    if first == "list":
        return pyarrow.list_(type_of(" ".join(rest)))
    if first == "timestamp":
        return pyarrow.timestamp(rest[0], tz=rest[1] if len(rest) > 1 else None)
    if first == "decimal":
        return pyarrow.decimal128(int(rest[0]), int(rest[1]))
    return {"string": pyarrow.string(), "int64": pyarrow.int64(), "uint64": pyarrow.uint64(), "int8": pyarrow.int8(),
            "float64": pyarrow.float64(), "float32": pyarrow.float32(), "bool": pyarrow.bool_(), "date": pyarrow.date32()}[first]


def value_of(kind, value):
    if value is None:
        return None
    if kind == "date":
        return datetime.date.fromisoformat(value)
    if kind.startswith("decimal"):
        return decimal.Decimal(value)
    return value


def table_of(path):
    with open(path, encoding="utf-8") as file:
        columns = json.load(file)
    return pyarrow.table({column["name"]: pyarrow.array([value_of(column["kind"], value) for value in column["values"]],
                                                        type_of(column["kind"])) for column in columns})


def frames_of(table):
    """{library: frame} with the types of the table."""
    import pandas  # pylint: disable=import-outside-toplevel
    import polars  # pylint: disable=import-outside-toplevel
    return {"pyarrow": table, "polars": polars.from_arrow(table),
            "pandas": table.to_pandas(types_mapper=pandas.ArrowDtype),
            # Numpy's types, where they hold what is missing without another type.
            "pandas of numpy": table.to_pandas(integer_object_nulls=True)}


def main():
    if sys.argv[1] == "write":
        table = table_of(sys.argv[2])
        pyarrow.parquet.write_table(table, sys.argv[3] + "/rows.parquet")
        pyarrow.feather.write_feather(table, sys.argv[3] + "/rows.arrow")
        return
    import millrace  # pylint: disable=import-outside-toplevel
    import numpy  # pylint: disable=import-outside-toplevel
    predictor = millrace.Predictor(sys.argv[2])
    json.dump({library: [float(score) for score in numpy.ravel(predictor.predict(frame))]
               for library, frame in frames_of(table_of(sys.argv[3])).items()}, sys.stdout)


if __name__ == "__main__":
    main()
