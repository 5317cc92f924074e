"""Rows in memory train and score as their CSV text does, whatever library has them."""

import datetime
import decimal
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import support

support.with_packages("FRAMES_PYTHON", ["pandas", "polars", "pyarrow"])

import numpy as np  # noqa: E402

import millrace  # noqa: E402

JOB = """
thread_num: 1
update_mode: SERIAL
data_desc {
  name: "csv"
  batch_size: 32
  csv { missing: "?" }
  feature { name: "label" from: "click" id {} is_dense: true }
  feature { name: "age" default: "30" standardize {} }
  feature { name: "city" vocabulary { min_count: 2 } hash {} }
  feature { name: "tags" split { by: "|" } hash {} }
  feature { name: "hour" from: "time" date_part { part: HOUR } hash {} }
  feature { name: "price" default: "0" clip { min: 0 } log1p {} }
  feature { name: "x" from: ["city", "age"] cross {} }
}
model {
  table { name: "t" dim: 4 init { uniform: 0.1 } optimizer { adagrad { lr: 0.05 } } }
  layer { name: "e" embedding { slots: ["city", "tags", "hour", "x"] table: "t" } }
  layer { name: "h" fc { in: ["e", "age", "price"] units: 8 act: RELU } }
  layer { name: "y" fc { in: "h" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  metric { kind: AUC }
  optimizer { adagrad { lr: 0.1 } }
}
"""


def rows_of(count, seed=1):
    """Columns of Python's values, None where one is missing."""
    rng = np.random.default_rng(seed)
    absent = rng.random((count, 3)) < 0.1
    return {
        "click": [int(v) for v in rng.integers(2, size=count)],
        "age": [None if absent[i, 0] else int(v) for i, v in enumerate(rng.integers(100, size=count))],
        "city": [None if absent[i, 1] else str(v) for i, v in enumerate(rng.choice(["Wien", "東京", 'a "b", c', " spaced "], size=count))],
        "tags": ["|".join("t%d" % v for v in rng.integers(20, size=n)) for n in rng.integers(4, size=count)],
        "time": [datetime.datetime(2024, 1, 1) + datetime.timedelta(minutes=int(v)) for v in rng.integers(10**6, size=count)],
        "price": [None if absent[i, 2] else float(v) for i, v in enumerate(rng.normal(10, 20, size=count) * 10.0 ** rng.integers(-8, 8, size=count))],
    }


def csv_of(columns):
    """The text of columns as pandas and polars write it."""
    def cell(value):
        text = "" if value is None else str(value)
        return '"%s"' % text.replace('"', '""') if any(c in text for c in ',"') else text
    lines = [",".join(columns)] + [",".join(map(cell, row)) for row in zip(*columns.values())]
    return "\n".join(lines) + "\n"


def frames_of(columns):
    """The same rows as each library has them that is at hand."""
    yield "lists", columns
    yield "arrays", {name: np.array(values, dtype="uint8" if name == "click" else object) for name, values in columns.items()}
    for name in ("pandas", "polars", "pyarrow"):
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        if name == "pandas":
            frame = library.DataFrame({**columns, "age": library.array(columns["age"], dtype="Int64")})
            yield name, frame
            yield "pandas, by category", frame.astype({"city": "category", "click": "uint8"})
            yield "pandas without Arrow", WithoutArrow(frame)
        elif name == "polars":
            yield name, library.DataFrame(columns)
            yield "polars, by category", library.DataFrame(columns).with_columns(library.col("city").cast(library.Categorical))
        else:
            table = library.table(columns)
            yield name, table
            yield "pyarrow, in parts", library.concat_tables([table.slice(0, 7), table.slice(7, 100), table.slice(107)])
            yield "pyarrow, read", table.to_reader(max_chunksize=50)


class WithoutArrow:
    """A frame of pandas where pyarrow is not installed."""

    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        raise ImportError("`Import pyarrow` failed.")

    def __getattr__(self, name):
        return getattr(self._frame, name)


class FramesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def job(self, text=JOB, overrides=(), output_dir=""):
        return millrace.Job.from_text(text, overrides=list(overrides), output_dir=output_dir and os.path.join(self.folder, output_dir))

    def test_every_kind_of_frame_trains_to_the_bytes_of_its_csv(self):
        columns = rows_of(400)
        support.write(os.path.join(self.folder, "train.csv"), csv_of(columns))
        of_file = self.job(overrides=['filelist="%s/train.csv"' % self.folder], output_dir="csv")
        of_file.run(verbose=False)
        expected = millrace.Predictor(self.folder + "/csv/model").predict_lines(csv_of(columns))
        for name, frame in frames_of(columns):
            with self.subTest(name):
                job = self.job(output_dir="out")
                self.assertEqual(job.fit(frame, verbose=False).examples, 400)
                for parameter in ("h.w_0", "y.w_0", "y.b_0"):
                    np.testing.assert_array_equal(job.parameter(parameter), of_file.parameter(parameter))
                np.testing.assert_array_equal(job.parameter("t").keys, of_file.parameter("t").keys)
                model = millrace.Predictor(self.folder + "/out/model")
                np.testing.assert_array_equal(model.predict_lines(csv_of(columns)), expected)

    def test_every_kind_of_frame_is_scored_as_its_csv(self):
        columns = rows_of(300)
        self.job(output_dir="out").fit(columns, verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        other = rows_of(2500, seed=2)
        expected = model.predict_lines(csv_of(other))
        self.assertGreater(np.unique(expected).size, 2000)
        for name, frame in frames_of(other):
            with self.subTest(name):
                np.testing.assert_array_equal(model.predict(frame), expected)
        # The label is not needed, others count for nothing, and columns stand anywhere.
        bare = {"more": [0] * 2500, **{name: other[name] for name in list(other)[:0:-1]}}
        np.testing.assert_array_equal(model.predict(bare), expected)
        self.assertEqual(model.predict({name: [] for name in other}).shape, (0,))

    def test_a_bad_value_is_named_with_row_column_and_value(self):
        columns = rows_of(50)
        columns["age"] = [str(v or 0) for v in columns["age"]]
        columns["age"][17] = "3x"
        with self.assertRaisesRegex(millrace.DataError, r'data: row 17: slot "age": column "age": expected a number, found "3x"'):
            self.job().fit(columns, verbose=False)
        report = self.job(overrides=["data_desc.bad_lines.action=SKIP"]).fit(columns, verbose=False)
        self.assertEqual((report.examples, report.data["bad_lines"]), (49, 1))
        self.assertIn("data: row 17", report.data["first_bad_lines"][0])
        columns["age"][17] = "1"
        self.job(output_dir="out").fit(columns, verbose=False)
        with self.assertRaisesRegex(millrace.DataError, r'rows: row 1: slot "age": column "age": expected a number, found "\?\?"'):
            millrace.Predictor(self.folder + "/out/model").predict({**{n: v[:2] for n, v in columns.items()}, "age": ["1", "??"]})

    def test_a_value_that_an_operator_refuses_is_of_the_same_row(self):
        columns = rows_of(50)
        columns["click"][17] = 2
        with self.assertRaisesRegex(millrace.DataError, 'label "label" of data: row 17 is 2'):
            self.job(JOB.replace('label: "label" }', 'label: "label" class_weight: [1, 2] }')).fit(columns, verbose=False)

    def test_whole_numbers_that_became_floats_are_told_where_they_are_words(self):
        pandas = support.package(self, "pandas")
        text = JOB.replace('feature { name: "city" vocabulary', 'feature { name: "city" from: "town" hash {} }\n  feature { name: "place" from: "city" vocabulary')
        columns = {**rows_of(50), "town": [i % 7 for i in range(50)]}
        columns["age"] = ["%s" % (age or 30) for age in columns["age"]]
        frame = pandas.DataFrame(columns)
        job = self.job(text, output_dir="out")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            job.fit(frame, verbose=False)
        gaps = frame.copy()
        gaps.loc[3, "town"] = None
        said = 'column "town" holds whole numbers as floats: its words are "0.0", not "0"'
        with self.assertWarnsRegex(millrace.MillraceWarning, "Job.fit: data: " + said):
            job.fit(gaps, verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        # The last fit trained on floats.
        whole = 'predict: column "town" holds whole numbers: its words are "0", and "0.0" in training'
        with self.assertWarnsRegex(millrace.MillraceWarning, whole):
            model.predict(frame)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(gaps)
            job.fit(frame, verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        unlike = 'predict: column "town" holds whole numbers as floats: its words are "0.0", and "0" in training'
        with self.assertWarnsRegex(millrace.MillraceWarning, unlike):
            model.predict(gaps)
        with self.assertWarnsRegex(millrace.MillraceWarning, unlike):
            model.predict({**columns, "town": gaps["town"].to_numpy()})
        with self.assertWarnsRegex(millrace.MillraceWarning, 'predict: column "town" holds whole numbers as floats'):
            model.predict({**columns, "town": np.ma.masked_array(np.arange(50.0), [True] * 25 + [False] * 25)})
        for parts in ([frame, gaps], iter([frame, gaps])):
            with self.assertWarnsRegex(millrace.MillraceWarning, said):
                job.fit(parts, verbose=False)
        floats = {**columns, "town": [float(town) for town in columns["town"]]}
        polars = support.package(self, "polars")
        pyarrow = support.package(self, "pyarrow")
        for given in (floats, polars.DataFrame(floats), pyarrow.table(floats), {**floats, "town": [*floats["town"][:-1], None]}):
            with self.assertWarnsRegex(millrace.MillraceWarning, unlike):
                model.predict(given)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(gaps.astype({"town": "Int64"}))
            model.predict({**columns, "town": gaps["town"].to_numpy() + 0.5})
            model.predict({**columns, "town": np.ma.masked_array(np.arange(50.0) + 0.5, [True] * 25 + [False] * 25)})
            # The id of a label is no word.
            job.fit(frame.astype({"click": "f8"}), verbose=False)
        for data in (frame["click"], (frame, frame["click"])):
            with self.assertRaisesRegex(millrace.ConfigError, "not a Series: labels and weights are columns of the frame"):
                job.fit(data, verbose=False)
        with self.assertRaisesRegex(millrace.ConfigError, "not a Series"):
            model.predict(frame["click"])

    def test_columns_that_are_not_there_or_have_no_texts_are_named(self):
        columns = rows_of(20)
        lacking = {("aged" if name == "age" else name): values for name, values in columns.items()}
        with self.assertRaisesRegex(millrace.DataError, 'data has no column "age".*"aged"'):
            self.job().fit(lacking, verbose=False)
        with self.assertRaisesRegex(millrace.DataError, 'eval_data has no column "age"'):
            self.job().fit(columns, eval_data=lacking, verbose=False)
        for values, message in [([{}] * 20, r'column "age": row 0: expected a number, a text, .*found a dict'),
                                (np.zeros((20, 2)), r'column "age": one value a row, not an array \[20, 2\]'),
                                (np.zeros(20, dtype=complex), 'column "age": numbers, texts or times, not complex'),
                                ([1] * 19, 'column "age" has 19 rows, and column "click" 20'),
                                (7, 'column "age": an array or a list'),
                                (np.float64(7), r'column "age": an array or a list, one value a row, not .*7')]:
            with self.subTest(message), self.assertRaisesRegex(millrace.Error, message):
                self.job().fit({**columns, "age": values}, verbose=False)
        for data, message in [(7, "Job.fit: data: a data frame of pandas"), ([1, 2], "data: part 0: a data frame of pandas"),
                              (np.zeros((3, 2)), "data: a data frame of pandas.* not a ndarray"),
                              ("train.csv", "a file that is called .parquet, not 'train.csv'")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                self.job().fit(data)

    def test_values_that_are_missing_take_the_default(self):
        columns = {name: values[:6] for name, values in rows_of(300).items()}
        self.job(output_dir="out").fit(rows_of(300), verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        expected = model.predict_lines(csv_of({**columns, "age": [None] * 6}))
        nan = float("nan")
        for absent in ([None] * 6, [nan] * 6, [""] * 6, ["?", " ? ", None, nan, "", " "], np.array([None] * 6),
                       np.ma.masked_array([7] * 6, mask=True), np.array([np.datetime64("NaT")] * 6)):
            np.testing.assert_array_equal(model.predict({**columns, "age": absent}), expected)
        np.testing.assert_array_equal(model.predict({**columns, "age": np.full(6, nan, dtype=np.float32)}), expected)

    def test_times_that_are_masked_are_missing(self):
        self.job(output_dir="out").fit(rows_of(300), verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        few = {name: values[:3] for name, values in rows_of(300).items()}
        times = np.array(["2024-01-01T05", "2024-01-01T06", "NaT"], dtype="datetime64[s]")
        expected = model.predict({**few, "time": [datetime.datetime(2024, 1, 1, 5), None, None]})
        masked = np.ma.masked_array(times, mask=[False, True, False])
        np.testing.assert_array_equal(model.predict({**few, "time": masked}), expected)
        self.assertNotEqual(model.predict({**few, "time": times})[1], expected[1])

    def test_nan_is_a_number_where_a_library_has_null(self):
        self.job(output_dir="out").fit(rows_of(300), verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        pyarrow = support.package(self, "pyarrow")
        columns = {name: values[:2] for name, values in rows_of(300).items()}
        with self.assertWarns(millrace.MillraceWarning):
            scores = model.predict(pyarrow.table({**columns, "age": [float("nan"), None]}))
        self.assertEqual(np.isnan(scores).tolist(), [True, False])

    def test_numbers_keep_their_digits(self):
        text = JOB.replace('feature { name: "age" default: "30" standardize {} }', 'feature { name: "age" }').replace(
            'from: ["city", "age"]', 'from: ["age", "price"]')
        columns = rows_of(300)
        columns["age"] = [v or 0 for v in columns["age"]]
        self.job(text, output_dir="out").fit(columns, verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        few = {name: values[:8] for name, values in columns.items()}
        for values in (np.array([0.1, 1/3, 1e22, 5e-324, 1e16, 1e-5, 123456789.125, 3.0]),
                       np.array([0.1, 1/3, 1e22, 16777216, 1e16, 1e-5, 123456.79, 3.0], dtype=np.float32),
                       np.array([2**63 - 1, -2**63, 0, 1, 2, 3, 4, 5]), np.array([2**64 - 1] * 8, dtype=np.uint64),
                       np.arange(8, dtype=np.int8), np.arange(8, dtype=np.uint16), np.arange(16)[::2],
                       np.arange(8, dtype=">i4"), [decimal.Decimal("1.50")] * 8, [2**70, 1, 2, 3, 4, 5, 6, 7],
                       np.arange(8, dtype=np.float16) / 4):
            lines = csv_of({**few, "age": [str(v) for v in values]})
            np.testing.assert_array_equal(model.predict({**few, "age": values}), model.predict_lines(lines), err_msg=repr(values))
        np.testing.assert_array_equal(model.predict({**few, "age": [True, False] * 4}), model.predict({**few, "age": [1, 0] * 4}))
        np.testing.assert_array_equal(model.predict({**few, "age": np.array([True, False] * 4)}), model.predict({**few, "age": [1, 0] * 4}))

    def test_lists_are_several_values(self):
        columns = rows_of(200)
        self.job(output_dir="out").fit(columns, verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        text = {**columns, "tags": ["a|b|7" if i % 2 else None for i in range(200)]}
        lists = {**columns, "tags": [["a", "b", 7] if i % 2 else [] for i in range(200)]}
        np.testing.assert_array_equal(model.predict(lists), model.predict(text))
        lists["tags"] = [("a", None, "b", np.int64(7)) if i % 2 else None for i in range(200)]
        np.testing.assert_array_equal(model.predict(lists), model.predict(text))

    def test_evaluation_early_stopping_threads_and_memory_are_those_of_files(self):
        text = JOB.replace("thread_num: 1\nupdate_mode: SERIAL", """thread_num: 2 epochs: 50
            dataset { class_name: "InMemoryDataset" local_shuffle: true }
            eval { early_stopping { metric: "auc" patience: 2 } }""")
        report = self.job(text, output_dir="out").fit(rows_of(600), eval_data=rows_of(300, seed=2), verbose=False)
        self.assertLess(report.epochs, 50)
        self.assertTrue(report.stopped_early)
        self.assertEqual(report.evaluation["examples"], 300)
        with self.assertRaisesRegex(millrace.ConfigError, "give eval_data"):
            self.job(text, output_dir="out").fit(rows_of(600), verbose=False)

    def test_a_run_goes_on_from_a_checkpoint_within_a_pass_over_the_same_rows(self):
        text = JOB + "epochs: 2 checkpoint { every_steps: 5 keep: 100 }"
        columns = rows_of(400)
        whole = self.job(text, output_dir="out")
        whole.fit(columns, verbose=False)
        steps = sorted(os.listdir(self.folder + "/out/checkpoints"))
        checkpoint = [self.folder + "/out/checkpoints/" + step for step in steps if step.endswith("5")][0]
        job = self.job(text, output_dir="again")
        report = job.fit(columns, resume=checkpoint, verbose=False)
        self.assertEqual(report.total_examples, 800)
        self.assertLess(report.examples, 800)
        np.testing.assert_array_equal(job.parameter("h.w_0"), whole.parameter("h.w_0"))
        for other, message in [(rows_of(401), "had 400 rows in memory and has now 401"),
                               (rows_of(400, seed=3), "has other values now, in as many rows")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                self.job(text, output_dir="third").fit(other, resume=checkpoint, verbose=False)

    def test_iterables_parquet_tensors_and_sparse_matrices_are_taken(self):
        columns = rows_of(400)
        whole = self.job(output_dir="whole")
        whole.fit(columns, verbose=False)

        def parts():
            for begin in range(0, 400, 150):
                yield {name: values[begin:begin + 150] for name, values in columns.items()}

        job = self.job(output_dir="out")
        self.assertEqual(job.fit(parts(), verbose=False).examples, 400)
        np.testing.assert_array_equal(job.parameter("h.w_0"), whole.parameter("h.w_0"))
        with self.assertRaisesRegex(millrace.DataError, 'data: frame 1 has other columns than frame 0: column 1 is "city", and was "age"'):
            self.job().fit([columns, {name: columns[name] for name in columns if name != "age"}])
        for nothing in ([], iter(())):
            with self.assertRaisesRegex(millrace.ConfigError, "data: no frame came of it"):
                self.job().fit(nothing)
        with self.assertRaisesRegex(millrace.ConfigError, "data: part 0: a data frame of pandas"):
            self.job().fit([7])
        model = millrace.Predictor(self.folder + "/out/model")
        few = {name: values[:3] for name, values in columns.items()}
        expected = model.predict({**few, "tags": ["0|2", "", "1"], "age": [1, 2, 3]})

        class Tensor:  # what speaks DLPack alone, as one of torch does
            def __init__(self, array):
                self._array = array

            def __dlpack__(self, **options):
                return self._array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self._array.__dlpack_device__()

        np.testing.assert_array_equal(
            model.predict({**few, "tags": [[0, 2], [], [1]], "age": Tensor(np.array([1, 2, 3]))}), expected)

    def test_a_sparse_matrix_is_a_list_of_columns_a_row(self):
        sparse = support.package(self, "scipy.sparse")
        self.job(output_dir="out").fit(rows_of(300), verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        few = {name: values[:3] for name, values in rows_of(300).items()}
        matrix = sparse.csr_matrix(np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]]))
        np.testing.assert_array_equal(model.predict({**few, "tags": matrix}), model.predict({**few, "tags": ["0|2", "", "1"]}))
        with self.assertRaisesRegex(millrace.ConfigError, 'column "tags": a sparse matrix .* 2 would be lost'):
            model.predict({**few, "tags": 2 * matrix})

    def test_a_parquet_file_that_its_checksums_deny_is_refused(self):
        pyarrow = support.package(self, "pyarrow")
        from pyarrow import parquet
        path = self.folder + "/damaged.parquet"
        parquet.write_table(pyarrow.table(rows_of(200)), path, write_page_checksum=True, compression="none", use_dictionary=False)
        with open(path, "rb") as file:
            data = bytearray(file.read())
        data[data.index(b"Wien")] ^= 1
        with open(path, "wb") as file:
            file.write(data)
        with self.assertRaisesRegex(millrace.DataError, "(?i)crc|checksum"):
            self.job().fit(path, verbose=False)

    def test_parquet_files_are_read(self):
        pyarrow = support.package(self, "pyarrow")
        from pyarrow import parquet
        columns = rows_of(400)
        whole = self.job(output_dir="whole")
        whole.fit(columns, verbose=False)
        table = pyarrow.table({**columns, "more": [{"a": 1}] * 400})
        os.mkdir(self.folder + "/days")
        parquet.write_table(table.slice(0, 150), self.folder + "/days/1.parquet")
        parquet.write_table(table.slice(150), self.folder + "/days/2.parquet")
        for path in (self.folder + "/days", self.folder + "/days/*.parquet", [self.folder + "/days/%d.parquet" % day for day in (1, 2)]):
            job = self.job()
            self.assertEqual(job.fit(path, verbose=False).examples, 400)
            np.testing.assert_array_equal(job.parameter("h.w_0"), whole.parameter("h.w_0"))
        scores = millrace.Predictor(self.folder + "/whole/model").predict(self.folder + "/days/1.parquet")
        self.assertEqual(scores.shape, (150,))
        with self.assertRaisesRegex(millrace.NotFoundError, "no such file"):
            self.job().fit(self.folder + "/days/3.parquet")
        support.write(self.folder + "/text.parquet", "1,2\n")
        with self.assertRaisesRegex(millrace.DataError, "pyarrow cannot read .* as Parquet"):
            self.job().fit(self.folder + "/text.parquet")
        with self.assertRaisesRegex(TypeError, "not the path 'x.parquet'"):
            millrace.Classifier().fit("x.parquet", [0, 1])

    def test_columnar_files_train_to_the_bytes_of_their_rows_in_memory(self):
        pyarrow = support.package(self, "pyarrow")
        from pyarrow import parquet
        columns = rows_of(400)
        table = pyarrow.table({**columns, "tags": [text.split("|") if text else [] for text in columns["tags"]],
                               "city": pyarrow.array(columns["city"]).dictionary_encode(), "more": [{"a": 1}] * 400})
        whole = self.job(JOB.replace('csv { missing: "?" }', ''), output_dir="whole")
        whole.fit(table, verbose=False)
        scores = millrace.Predictor(self.folder + "/whole/model").predict(table)
        parquet.write_table(table, self.folder + "/rows.parquet", row_group_size=150)
        for name, maker in (("file", pyarrow.ipc.new_file), ("stream", pyarrow.ipc.new_stream)):
            with maker(self.folder + "/%s.arrow" % name, table.schema) as out:
                out.write_table(table, max_chunksize=150)
        for form, file in (("parquet", "rows.parquet"), ("arrow", "file.arrow"), ("arrow", "stream.arrow")):
            with self.subTest(file):
                text = JOB.replace('name: "csv"', 'name: "%s"' % form).replace('csv { missing: "?" }', "")
                path = os.path.join(self.folder, file)
                job = self.job(text, overrides=['filelist="%s"' % path], output_dir="out")
                self.assertEqual(job.run(verbose=False).examples, 400)
                for parameter in ("h.w_0", "y.w_0", "y.b_0"):
                    np.testing.assert_array_equal(job.parameter(parameter), whole.parameter(parameter))
                np.testing.assert_array_equal(job.parameter("t").keys, whole.parameter("t").keys)
                predictor = millrace.Predictor(self.folder + "/out/model")
                np.testing.assert_array_equal(predictor.predict(table), scores)
                with self.assertRaisesRegex(millrace.ConfigError, "no text; predict takes"):
                    predictor.predict_lines("1,2\n")
                done = self.program("predictor", "--model_dir=%s/out/model" % self.folder, "--input=" + path)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(" of 400 examples", done.stderr)
                np.testing.assert_array_equal(np.array(done.stdout.split(), dtype=np.float32), scores.reshape(-1))

    def test_times_with_a_zone_are_what_its_clocks_show(self):
        pandas, polars, pyarrow = (support.package(self, name) for name in ("pandas", "polars", "pyarrow"))
        from pyarrow import compute, parquet
        text = JOB.replace('csv { missing: "?" }', '')
        columns = rows_of(200)
        table = pyarrow.table({**columns, "time": compute.assume_timezone(pyarrow.array(columns["time"]), "Asia/Tokyo")})
        frame = pandas.DataFrame({**columns, "age": pandas.array(columns["age"], dtype="Int64")})
        frame["time"] = frame["time"].dt.tz_localize("Asia/Tokyo")
        path = self.folder + "/zoned.parquet"
        parquet.write_table(table, path)
        whole = self.job(text)
        whole.fit(columns, verbose=False)
        for name, rows in (("pyarrow", table), ("a reader", table.to_reader(max_chunksize=50)), ("pandas", frame),
                           ("polars", polars.from_arrow(table)), ("a path", path)):
            with self.subTest(name):
                job = self.job(text)
                job.fit(rows, verbose=False)
                np.testing.assert_array_equal(job.parameter("h.w_0"), whole.parameter("h.w_0"))
        self.assertEqual(str(frame["time"].dt.tz), "Asia/Tokyo")
        job = self.job(JOB.replace('name: "csv"', 'name: "parquet"').replace('csv { missing: "?" }', ""), overrides=['filelist="%s"' % path])
        job.run(verbose=False)
        np.testing.assert_array_equal(job.parameter("h.w_0"), whole.parameter("h.w_0"))

    def test_a_model_of_one_format_scores_another(self):
        pyarrow = support.package(self, "pyarrow")
        from pyarrow import parquet
        columns = rows_of(300)
        support.write(self.folder + "/rows.csv", csv_of(columns))
        parquet.write_table(pyarrow.table(columns), self.folder + "/rows.parquet")
        text = JOB.replace('csv { missing: "?" }', '')
        self.job(text, overrides=['filelist="%s/rows.csv"' % self.folder], output_dir="out").run(verbose=False)
        of_csv = self.program("predictor", "--model_dir=%s/out/model" % self.folder, "--input=%s/rows.csv" % self.folder)
        refused = self.program("predictor", "--model_dir=%s/out/model" % self.folder, "--input=%s/rows.parquet" % self.folder)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("this is a Parquet file: ", refused.stderr)
        self.assertIn("predictor --format=parquet scores it", refused.stderr)
        of_parquet = self.program("predictor", "--model_dir=%s/out/model" % self.folder, "--input=%s/rows.parquet" % self.folder, "--format=parquet")
        self.assertEqual(of_parquet.returncode, 0, of_parquet.stderr)
        self.assertEqual(of_parquet.stdout, of_csv.stdout)
        del columns["click"]
        parquet.write_table(pyarrow.table(columns), self.folder + "/new.parquet")
        unlabelled = self.program("predictor", "--model_dir=%s/out/model" % self.folder, "--input=%s/new.parquet" % self.folder, "--format=parquet")
        self.assertEqual(unlabelled.returncode, 0, unlabelled.stderr)
        self.assertEqual(unlabelled.stdout, of_csv.stdout)
        self.assertEqual(unlabelled.stderr.count('note: the input has no column "click", on which no score depends; without it there are no metrics'), 1)
        columns["age"] = [None if age is None else float(age) for age in columns["age"]]
        parquet.write_table(pyarrow.table(columns), self.folder + "/floats.parquet")
        floats = self.program("predictor", "--model_dir=%s/out/model" % self.folder, "--input=%s/floats.parquet" % self.folder, "--format=parquet")
        self.assertEqual(floats.returncode, 0, floats.stderr)
        self.assertRegex(floats.stderr, r'column "age" holds whole numbers as floats: its words are "\d+\.0" \(.*floats.parquet: record 1\)')
        self.assertNotIn("floats", unlabelled.stderr)
        wrong = self.program("predictor", "--model_dir=%s/out/model" % self.folder, "--input=%s/rows.csv" % self.folder, "--format=tfrecord")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn('--format: "tfrecord" has no columns with names; those that have: ', wrong.stderr)

    def test_columnar_files_that_cannot_be_read_say_why(self):
        pyarrow = support.package(self, "pyarrow")
        from pyarrow import parquet
        columns = rows_of(60)
        columns["price"][16] = None
        table = pyarrow.table({**columns, "price": ["12x" if i == 16 else str(v or 0) for i, v in enumerate(columns["price"])]})
        parquet.write_table(pyarrow.table(rows_of(60)), self.folder + "/good.parquet")
        parquet.write_table(table, self.folder + "/bad.parquet")
        parquet.write_table(table.rename_columns(["clicked", *table.column_names[1:]]), self.folder + "/renamed.parquet")
        parquet.write_table(table.set_column(2, "city", [[{"a": 1}] * 60]), self.folder + "/struct.parquet")
        support.write(self.folder + "/text.parquet", "1,2\n")
        with open(self.folder + "/bad.parquet", "rb") as file:
            half = file.read()[:-100]
        with open(self.folder + "/half.parquet", "wb") as file:
            file.write(half)
        text = JOB.replace('name: "csv"', 'name: "parquet"').replace('csv { missing: "?" }', "")
        support.write(self.folder + "/job.prototxt", text)
        for file, expected in (("bad", 'bad.parquet: record 17: slot "price": column "price": expected a number, found "12x"'),
                               ("renamed", 'no column "click"; did you mean "clicked"?'),
                               ("struct", 'column "city" is a struct, of which no text is made'),
                               ("text", "pyarrow cannot read it as a file of parquet"),
                               ("half", "pyarrow cannot read it as a file of parquet")):
            with self.subTest(file):
                done = self.program("trainer", "--trainer_desc=%s/job.prototxt" % self.folder, "--output_dir=%s/out_%s" % (self.folder, file),
                                    "--set=filelist=\"%s/%s.parquet\"" % (self.folder, file))
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertEqual(done.stderr.count(expected), 1, done.stderr)
                self.assertNotIn("command", done.stderr)
                valid = self.program("trainer", "--trainer_desc=%s/job.prototxt" % self.folder, "--set=filelist=\"%s/good.parquet\"" % self.folder,
                                     "--set=eval={ filelist: \"%s/%s.parquet\" }" % (self.folder, file), "--validate_only")
                self.assertEqual(valid.returncode, 3, valid.stderr)
                self.assertIn(expected, valid.stderr)
                self.assertIn(file + ".parquet", done.stderr)
        done = self.program("trainer", "--trainer_desc=%s/job.prototxt" % self.folder, "--output_dir=%s/out" % self.folder,
                            '--set=filelist="%s/bad.parquet"' % self.folder, "--set=data_desc.bad_lines.action=SKIP")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"examples": 59', support.read(self.folder + "/out/run.json"))
        done = self.program("trainer", "--trainer_desc=%s/job.prototxt" % self.folder, "--output_dir=%s/out2" % self.folder,
                            '--set=filelist="%s/bad.parquet"' % self.folder, python="/bin/false-python")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/bin/false-python", done.stderr)

    def test_ids_that_are_floats_in_one_of_several_columnar_files_are_refused(self):
        pyarrow = support.package(self, "pyarrow")
        from pyarrow import feather, parquet
        text = JOB.replace('feature { name: "city" vocabulary', 'feature { name: "city" from: "town" vocabulary').replace('csv { missing: "?" }', "")
        columns = rows_of(60)
        tables = {name: pyarrow.table({**columns, "price": price, "town": town}) for name, price, town in (
            ("whole", [i % 80 for i in range(60)], [i % 7 for i in range(60)]),
            ("floats", [i % 80 + 0.5 for i in range(60)], [float(i % 7) for i in range(60)]),
            ("texts", [i % 80 for i in range(60)], ["%d" % (i % 7) for i in range(60)]),
            ("lists", [i % 80 for i in range(60)], [[float(i % 7)] for i in range(60)]),
            ("none", [i % 80 for i in range(60)], pyarrow.nulls(60)),
            ("priced", [i % 80 + 0.5 for i in range(60)], [i % 7 for i in range(60)]))}
        tables["unlabelled"] = tables["priced"].drop(["click"])
        for form, write in (("parquet", parquet.write_table), ("arrow", feather.write_feather)):
            support.write(self.folder + "/job.prototxt", text.replace('name: "csv"', 'name: "%s"' % form))
            path = {name: "%s/%s.%s" % (self.folder, name, form) for name in tables}
            for name, table in tables.items():
                write(table, path[name])

            def train(*names, out="out", more=(), path=path):
                return self.program("trainer", "--trainer_desc=%s/job.prototxt" % self.folder, "--output_dir=%s/%s" % (self.folder, out),
                                    "--set=filelist=[%s]" % ", ".join('"%s"' % path[name] for name in names), *more)

            alike = train("whole", "texts", "none", out=form)
            self.assertEqual(alike.returncode, 0, alike.stderr)
            said = '%s: column "town" is of type double, and where the training began, with "%s", of type int64: ' \
                'the same id would be two words, as 5.0 and 5. Write it with one type in all files'
            for name in ("floats", "lists"):
                done = train("whole", name)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn(said % (path[name], path["whole"]), done.stderr)
            evaluated = train("whole", more=['--set=eval={ filelist: "%s" }' % path["floats"]])
            self.assertIn(said % (path["floats"], path["whole"]), evaluated.stderr)
            scored = self.program("predictor", "--model_dir=%s/%s/model" % (self.folder, form), "--input=" + path["floats"])
            self.assertEqual(scored.returncode, 3, scored.stderr)
            self.assertIn(said % (path["floats"], path["whole"]), scored.stderr)
            self.assertEqual(train("priced", out="priced-" + form).returncode, 0)
            scored = self.program("predictor", "--model_dir=%s/priced-%s/model" % (self.folder, form), "--input=" + path["unlabelled"])
            self.assertEqual(scored.returncode, 0, scored.stderr)
            first = train("floats", "whole")
            self.assertIn('whole.%s: column "town" is of type int64, and where the training began, with "%s", of type double' % (
                form, path["floats"]), first.stderr)

    def test_a_library_that_aborts_where_python_ends_costs_no_rows_of_a_columnar_file(self):
        pyarrow = support.package(self, "pyarrow")
        from pyarrow import parquet
        parquet.write_table(pyarrow.table(rows_of(60)), self.folder + "/rows.parquet")
        text = JOB.replace('name: "csv"', 'name: "parquet"').replace('csv { missing: "?" }', "")
        support.write(self.folder + "/job.prototxt", text)
        os.mkdir(self.folder + "/site")
        support.write(self.folder + "/site/sitecustomize.py", "import atexit, os\natexit.register(os.abort)\n")
        path = os.pathsep.join([self.folder + "/site", *filter(None, [os.environ.get("PYTHONPATH")])])
        done = self.program("trainer", "--trainer_desc=%s/job.prototxt" % self.folder, "--output_dir=%s/out" % self.folder,
                            '--set=filelist="%s/rows.parquet"' % self.folder, PYTHONPATH=path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"examples": 60', support.read(self.folder + "/out/run.json"))

    def program(self, name, *arguments, python=sys.executable, **env):
        return subprocess.run([os.path.join(support.BIN, name), *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, "MILLRACE_PYTHON": python, **env}, timeout=120)

    def test_ctrl_c_while_a_frame_is_taken_is_no_mistake_of_its_rows(self):
        pyarrow = support.package(self, "pyarrow")
        table = pyarrow.table(rows_of(50))
        parts = []

        def batches():
            while len(parts) < 3000:  # else half a minute
                parts.append(1)
                if len(parts) == 3:
                    signal.raise_signal(signal.SIGINT)
                time.sleep(0.01)
                yield from table.to_batches()

        with self.assertRaises(KeyboardInterrupt):
            self.job().fit(pyarrow.RecordBatchReader.from_batches(table.schema, batches()), verbose=False)
        self.assertLess(len(parts), 3000)

    def test_columns_that_nothing_takes_may_hold_anything(self):
        columns = rows_of(50)
        self.job(output_dir="out").fit({**columns, "more": [{}] * 50}, verbose=False)
        few = {name: values[:3] for name, values in columns.items()}
        self.assertEqual(millrace.Predictor(self.folder + "/out/model").predict({**few, "more": [{}] * 3}).shape, (3,))

    def test_callbacks_see_passes_and_evaluations_and_may_end_the_run(self):
        text = JOB + "epochs: 5 eval {}"
        columns, other = rows_of(400), rows_of(200, seed=2)
        seen = []
        report = self.job(text, output_dir="out").fit(columns, eval_data=other, verbose=False, callbacks=seen.append)
        self.assertEqual([entry["epoch"] for entry in report.passes], [1, 2, 3, 4, 5])
        self.assertEqual([entry["examples"] for entry in report.evaluations], [200] * 5)
        self.assertEqual([entry for entry in seen if entry["kind"] == "pass"], report.passes)
        self.assertEqual([entry for entry in seen if entry["kind"] == "evaluation"], report.evaluations)
        self.assertEqual(report.passes[-1]["auc"], report.metrics["auc"])
        self.assertEqual(report.evaluations[-1]["auc"], report.evaluation["auc"])
        shown = report._repr_html_()
        row = "<td>training, epoch 5</td><td>400</td><td>%.6f</td><td>%.6f</td>"
        self.assertIn(row % (report.passes[-1]["loss"], report.metrics["auc"]), shown)

        def end(entry):
            if entry["kind"] == "pass" and entry["epoch"] == 2:
                raise millrace.StopTraining

        job = self.job(text, output_dir="ended")
        report = job.fit(columns, eval_data=other, verbose=False, callbacks=[end])
        self.assertTrue(report.stopped_early)
        self.assertEqual(report.total_examples, 800)
        self.assertEqual(millrace.Predictor(self.folder + "/ended/model").predict(other).shape, (200,))
        with open(self.folder + "/ended/run.json", encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual((told["interrupted"], told["stopped_early"]), (False, True))
        with self.assertRaisesRegex(ZeroDivisionError, "division by zero"):
            self.job(text).fit(columns, eval_data=other, verbose=False, callbacks=[lambda entry: 1 / 0])
        with self.assertRaisesRegex(millrace.ConfigError, "callbacks: functions of a dict, not 7"):
            self.job().fit(columns, callbacks=[7])
        for callbacks in (7, None):
            with self.assertRaisesRegex(millrace.ConfigError, "callbacks: a function of a dict, or a list of these, not %r" % callbacks):
                self.job().fit(columns, callbacks=callbacks)

    def test_truth_values_that_are_words_are_told_where_a_file_writes_them_otherwise(self):
        pandas = support.package(self, "pandas")
        frame = pandas.DataFrame({"click": [i % 2 for i in range(40)], "vip": [i % 3 == 0 for i in range(40)]})
        path = os.path.join(self.folder, "rows.csv")
        frame.to_csv(path, index=False)
        text = """
            filelist: "%s"
            data_desc { name: "csv" batch_size: 8
                        feature { name: "label" from: "click" id {} is_dense: true } feature { name: "vip" hash {} } }
            model { table { name: "t" dim: 2 } layer { name: "e" embedding { slots: "vip" table: "t" } }
                    layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
                    loss { kind: LOG_LOSS in: "y" label: "label" } optimizer { sgd { lr: 0.1 } } }
            """ % path
        job = self.job(text, output_dir="out")
        job.run(verbose=False)
        unlike = 'predict: column "vip" holds truth values or whole numbers: its words are "1", and "True" in training'
        with self.assertWarnsRegex(millrace.MillraceWarning, unlike):
            millrace.Predictor(self.folder + "/out/model").predict(frame)
        job.fit(frame, verbose=False)
        model = millrace.Predictor(self.folder + "/out/model")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(frame)
        with self.assertWarnsRegex(millrace.MillraceWarning, 'column "vip" holds truth values: its words are "True" '):
            model.predict_lines(open(path, encoding="utf-8").read())

    def test_the_loss_of_a_pass_is_the_mean_over_its_examples(self):
        text = JOB.replace("metric { kind: AUC }", "metric { kind: LOGLOSS }") + "epochs: 2 eval {} checkpoint { every_steps: 5 }"
        columns = rows_of(407)  # the last batch has fewer rows
        job = self.job(text, output_dir="out")
        report = job.fit(columns, eval_data=columns, verbose=False)
        for row in report.passes + report.evaluations:
            self.assertAlmostEqual(row["loss"], row["logloss"], 5)
        # A run that goes on within the second pass counts what the one before has trained of it.
        shutil.rmtree(self.folder + "/out/checkpoints/step-000000000026")
        again = self.job(text, output_dir="out").fit(columns, eval_data=columns, verbose=False, resume="auto")
        self.assertLess(again.examples, 407)
        self.assertEqual(again.passes[-1]["loss"], report.passes[-1]["loss"])

    def test_a_job_without_metrics_has_its_loss(self):
        report = self.job(JOB.replace("metric { kind: AUC }", "") + "epochs: 3").fit(rows_of(400), verbose=False)
        losses = [row["loss"] for row in report.passes]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertIn("<th>loss</th>", report._repr_html_())

    def test_a_job_that_runs_is_not_run_again_by_a_callback_or_another_thread(self):
        columns = rows_of(100)
        job = self.job(JOB + "epochs: 3", output_dir="out")
        calls = [lambda: job.fit(columns, verbose=False), lambda: job.run(verbose=False), lambda: job.save_model(self.folder + "/model"),
                 lambda: job.parameter("h.w_0")]
        said = []

        def refused(call):
            with self.assertRaisesRegex(millrace.ConfigError, r"Job\.\w+: the job is running: .*StopTraining") as caught:
                call()
            said.append(str(caught.exception).split(":")[0])

        def callback(entry):
            for call in calls:
                refused(call)
            thread = threading.Thread(target=refused, args=(calls[0],))
            thread.start()
            thread.join()

        report = job.fit(columns, verbose=False, callbacks=callback)
        self.assertEqual(report.epochs, 3)
        self.assertEqual(said, ["Job.fit", "Job.run", "Job.save_model", "Job.parameter", "Job.fit"] * 3)
        self.assertFalse(os.path.exists(self.folder + "/model"))
        # It may be used again, after a run that failed as well.
        with self.assertRaises(ZeroDivisionError):
            job.fit(columns, verbose=False, callbacks=lambda entry: 1 / 0)
        self.assertEqual(job.fit(columns, verbose=False).epochs, 3)
        job.save_model(self.folder + "/model")
        self.assertEqual(job.parameter("h.w_0").shape[1], 8)

    def test_a_report_draws_its_metrics(self):
        support.package(self, "matplotlib").use("Agg")
        report = self.job(JOB + "epochs: 3 eval {}").fit(rows_of(200), eval_data=rows_of(100), verbose=False)
        self.assertEqual([[len(line.get_xdata()) for line in axis.lines] for axis in report.plot().axes], [[3, 3]] * 2)
        with self.assertRaisesRegex(millrace.ConfigError, 'no metric "f1"; there are: loss, auc'):
            report.plot(["f1"])

    def test_the_model_of_a_run_that_was_ended_can_be_saved(self):
        text = JOB + "epochs: 1000"
        job = self.job(text)
        with self.assertRaisesRegex(millrace.ConfigError, "nothing is trained yet"):
            job.save_model(self.folder + "/model")

        def press(entry):
            if entry["epoch"] == 3:
                signal.raise_signal(signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            job.fit(rows_of(400), verbose=False, callbacks=press)
        job.save_model(self.folder + "/model")
        self.assertEqual(millrace.Predictor(self.folder + "/model").predict(rows_of(30)).shape, (30,))

    def test_the_recipe_runs_as_it_stands_there(self):
        support.package(self, "pandas")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        text = support.read(os.path.join(support.ROOT, "docs", "recipes", "data_frames.md"))
        names = {}
        for source in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(compile(source, "docs/recipes/data_frames.md", "exec"), names)  # pylint: disable=exec-used
        self.assertGreater(names["report"].evaluation["auc"], 0.95)
        self.assertGreater(names["model"].score(names["test"], names["bought"][3000:]), 0.8)

    def test_evaluation_sets_have_frames_of_their_names(self):
        columns, one, two = rows_of(300), rows_of(120, seed=2), rows_of(80, seed=3)
        job = self.job(JOB + 'eval { set { name: "one" } set { name: "held" share: 0.2 } watch: "held" }')
        report = job.fit(columns, eval_data={"one": one, "two": two}, verbose=False)
        self.assertEqual(report.evaluation_sets["one"]["examples"], 120)
        self.assertEqual(report.evaluation_sets["two"]["examples"], 80)
        self.assertEqual(report.evaluation_sets["held"], {k: v for k, v in report.evaluation.items() if k != "step"})
        self.assertEqual(report.evaluation["examples"] + report.examples, 300)
        self.assertEqual(set(report.evaluations[-1]["sets"]), {"one", "two", "held"})
        with self.assertRaisesRegex(millrace.ConfigError, 'give eval_data={"one": ...}'):
            job.fit(columns, eval_data={"two": two}, verbose=False)
        with self.assertRaisesRegex(millrace.ConfigError, "a name of a set has letters"):
            job.fit(columns, eval_data={"a b": two}, verbose=False)
        since = JOB + 'eval { set { name: "late" since { column: "time" at: "2025-01-01" } } }'
        late = sum(time >= datetime.datetime(2025, 1, 1) for time in columns["time"])
        for _, frame in frames_of(columns):
            report = self.job(since).fit(frame, verbose=False)
            self.assertEqual(report.evaluation["examples"], late)
            self.assertEqual(report.examples, 300 - late)

    def test_the_column_that_parts_rows_by_time_need_be_no_feature(self):
        columns = rows_of(300)
        text = JOB.replace('  feature { name: "hour" from: "time" date_part { part: HOUR } hash {} }\n', "").replace('"hour", ', "")
        late = sum(time >= datetime.datetime(2025, 1, 1) for time in columns["time"])
        for name, frame in frames_of(columns):
            with self.subTest(name):
                report = self.job(text + 'eval { set { name: "late" since { column: "time" at: "2025-01-01" } } }').fit(frame, verbose=False)
                self.assertEqual(report.evaluation["examples"], late)

    def test_a_job_of_files_is_fitted_and_run_in_turns(self):
        columns, other = rows_of(300), rows_of(200, seed=2)
        support.write(os.path.join(self.folder, "train.csv"), csv_of(columns))
        job = self.job(overrides=['filelist="%s/train.csv"' % self.folder])
        job.run(verbose=False)
        of_file = job.parameter("h.w_0")
        self.assertEqual(job.fit(other, verbose=False).examples, 200)
        self.assertFalse((job.parameter("h.w_0") == of_file).all())
        self.assertEqual(job.run(verbose=False).examples, 300)
        np.testing.assert_array_equal(job.parameter("h.w_0"), of_file)
        self.assertEqual(job.fit(columns, verbose=False).examples, 300)
        np.testing.assert_array_equal(job.parameter("h.w_0"), of_file)

    def test_a_job_of_files_whose_eval_names_none_is_told_so(self):
        support.write(os.path.join(self.folder, "train.csv"), csv_of(rows_of(50)))
        with self.assertRaisesRegex(millrace.ConfigError, r"(?s)^(?!.*frame:).*eval.*filelist"):
            self.job(JOB + "eval {}", overrides=['filelist="%s/train.csv"' % self.folder]).run(verbose=False)

    def test_what_cannot_be_fitted_is_refused(self):
        job = self.job()
        with self.assertRaisesRegex(millrace.ConfigError, r"names no files to read.*Job.fit\(data\)"):
            job.run()
        self.assertIn("adagrad", job.ops)
        self.assertIn("frame:data", job.config)
        with self.assertRaisesRegex(millrace.ConfigError, "no command stands before rows in memory"):
            self.job(overrides=['data_desc.pipe_command="cat -v"']).fit(rows_of(10))
        support.write(os.path.join(self.folder, "eval.csv"), csv_of(rows_of(10)))
        with self.assertRaisesRegex(millrace.ConfigError, r'eval.csv" is a file, and the job\'s other rows lie in memory'):
            self.job(overrides=['eval.filelist="%s/eval.csv"' % self.folder]).fit(rows_of(10))
        plain = support.WIDE_DEEP % {"folder": self.folder}
        support.write(os.path.join(self.folder, "part-0"), "1 0 2 0.5 0.5 1 1 1 2 1 3\n")
        with self.assertRaisesRegex(millrace.ConfigError, "features make slots of their columns"):
            millrace.Job.from_text(plain).fit(rows_of(10))


if __name__ == "__main__":
    unittest.main()
