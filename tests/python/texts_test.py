"""A value has one text, whatever the format of its rows: ids and scores are those of any other format."""

import csv
import datetime
import importlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import support

support.with_packages("FRAMES_PYTHON", ["pandas", "polars", "pyarrow"])

import numpy as np  # noqa: E402

import millrace  # noqa: E402

JOB = """
thread_num: 1
update_mode: SERIAL
seed: 1
%(files)s
data_desc { name: "%(format)s" batch_size: 16 %(csv)s feature { name: "label" id {} is_dense: true } %(features)s }
model {
  table { name: "t" dim: 4 init { uniform: 0.5 } optimizer { adagrad { lr: 0.3 } } }
  layer { name: "e" embedding { slots: [%(slots)s] table: "t" } }
  layer { name: "y" fc { in: "e" units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" }
  optimizer { sgd { lr: 0.1 } }
}
"""
HASH = 'feature { name: "%s" hash {} }'
UTC = datetime.timezone.utc


class Stream:
    """Rows of a library that is known by Arrow's stream alone."""

    def __init__(self, rows):
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema=None):
        return self._rows.__arrow_c_stream__(requested_schema)


def times(*texts):
    return [datetime.datetime.fromisoformat(text) for text in texts]


class TextsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for name in ("pandas", "polars", "pyarrow"):
            try:
                setattr(cls, name, importlib.import_module(name))
            except ImportError:
                raise unittest.SkipTest("this Python has no " + name) from None
        importlib.import_module("pyarrow.parquet")
        importlib.import_module("pyarrow.feather")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, *words):
        done = subprocess.run([os.path.join(support.BIN, words[0]), *words[1:]], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "MILLRACE_PYTHON": sys.executable})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def job_text(self, form, columns, files="", csv_desc="", features=None):
        return JOB % {"format": form, "files": files, "csv": csv_desc, "slots": ", ".join('"%s"' % name for name in columns),
                      "features": features or " ".join(HASH % name for name in columns)}

    def files_of(self, table):
        """(format, csv's dialect, file) of one table, written by several programs."""
        pandas, polars = table.to_pandas(), self.polars.from_arrow(table)
        files = []

        def add(name, form, dialect=""):
            files.append((form, dialect, self.path(name)))
            return self.path(name)

        pandas.to_csv(add("pandas.csv", "csv"), index=False)
        pandas.to_csv(add("quoted.csv", "csv"), index=False, quoting=csv.QUOTE_ALL)
        pandas.to_csv(add("pandas.tsv", "csv", 'csv { delimiter: "\\t" }'), index=False, sep="\t")
        polars.write_csv(add("polars.csv", "csv"))
        self.pyarrow.parquet.write_table(table, add("a.parquet", "parquet"))
        pandas.to_parquet(add("b.parquet", "parquet"))
        self.pyarrow.feather.write_feather(table, add("a.arrow", "arrow"), compression="uncompressed")
        polars.write_ndjson(add("polars.json", "json"))
        return files

    def ids_of(self, form, dialect, path, columns, features=None):
        job = self.path("job.prototxt")
        with open(job, "w") as out:
            out.write(self.job_text(form, columns, 'filelist: "%s"' % path, dialect, features))
        shown = self.program("inspect", "head", "--trainer_desc=" + job, "--format=jsonl", "--batches=100").stdout
        batches = [json.loads(line) for line in shown.splitlines()]
        self.assertTrue(batches)
        return [batch["slots"] for batch in batches]

    def check(self, columns, features=None, left_out=()):
        """The rows of a table have the same ids in every file, which come back, and one model scores all of them alike."""
        table = self.pyarrow.table({"label": [0, 1] * (len(next(iter(columns.values()))) // 2), **columns})
        frames = {"pyarrow": table, "pandas": table.to_pandas(), "polars": self.polars.from_arrow(table),
                  "pandas of Arrow's types": table.to_pandas(types_mapper=self.pandas.ArrowDtype)}
        files = [one for one in self.files_of(table) if os.path.basename(one[2]) not in left_out]
        ids = {path: self.ids_of(form, dialect, path, list(columns), features) for form, dialect, path in files}
        first = ids[files[0][2]]
        self.assertEqual(sum(batch["label"]["shape"][0] for batch in first), len(table))
        for path, found in ids.items():
            self.assertEqual(found, first, os.path.basename(path))
        whole = millrace.Job.from_text(self.job_text("csv", columns, features=features), output_dir=self.path("out"))
        whole.fit(table, verbose=False)
        model = millrace.Predictor(self.path("out/model"))
        expected = model.predict(table)
        self.assertGreater(len(set(expected.reshape(-1).tolist())), 1)
        for name, frame in frames.items():
            np.testing.assert_array_equal(model.predict(frame), expected, name)
        for form, dialect, path in files:
            if dialect:
                continue
            done = self.program("predictor", "--model_dir=" + self.path("out/model"), "--format=" + form, "--input=" + path)
            np.testing.assert_array_equal(np.array(done.stdout.split(), dtype=np.float32), expected.reshape(-1), path)
        return {name: slot["values"] for name, slot in first[0].items()}

    def test_every_type_has_one_text_in_every_format(self):
        array, decimals = self.pyarrow.array, importlib.import_module("decimal").Decimal
        floats = [12345678.0, 123456789.0, 1e-5, 0.1, 1e16, 3e20, 5.5, -1.5e-7]
        fractions = times("2026-11-26 10:00:00", "2026-11-26 11:00:00.500", "1969-12-31 23:59:59", "2026-11-26 00:00:00") * 2
        midnights = times("2026-11-26", "2026-11-27", "2026-11-26", "2024-02-29") * 2
        columns = {
            "text": [" Wien", "Graz ", "\tLinz", "Bad Ischl", "Wien", "  ", "x", " x"],
            "parts": [" a b|c", "a b|c ", "d", " d", "1e-5|x", "0.00001|x", "e", "e "],
            "version": ["1.10", "1.1", "01", "1e345678", "007", "12e5", "68fd1e64", "2026-11"],
            "number": [" 1e-05", "0.00001", "x", " x", "1.0E-5", "1e-5", "y", "z"],
            "double": array(floats), "single": array(floats, self.pyarrow.float32()), "whole": list(range(8)),
            "decimal": [decimals(one) for one in ("1.10", "1.25", "0.05", "7.00")] * 2,
            "ms": array(fractions, self.pyarrow.timestamp("ms")), "us": array(fractions, self.pyarrow.timestamp("us")),
            "ns": array(fractions, self.pyarrow.timestamp("ns")), "midnight": array(midnights, self.pyarrow.timestamp("us")),
            "date": [value.date() for value in midnights],
            "time": ["2026-11-26T10:00:00", "2026-11-26 10:00:00.000", "2026-11-26 10:00", "y", "y ", "2026-11-26T10:00:00Z",
                     "2026-11-26 19:00:00+09:00", "2026-11-26T10:00:00.5Z"],
        }
        plain = " ".join(HASH % name for name in columns if name not in ("parts", "number", "version"))
        ids = self.check(columns, plain + """
            feature { name: "parts" split { by: "|" } ngrams { least: 1 most: 2 } hash {} }
            feature { name: "number" vocabulary { words: ["1e-5", "x"] } hash {} }
            feature { name: "version" from: ["version", "time"] cross {} }""")
        for a, b in ((0, 1), (0, 2), (3, 4), (5, 6)):
            self.assertEqual(ids["time"][a], ids["time"][b])
        self.assertEqual(len(set(ids["time"])), 4)

    def test_halves(self):
        values = self.pyarrow.array(np.array([0.1, 1e-5, 2.5, 1.001], np.float16))
        self.check({"c": values}, left_out=("polars.csv", "polars.json"))  # polars makes float32 of them

    def test_the_units_of_times_have_the_same_ids(self):
        values = times("2026-11-26 10:00:00", "2026-11-26 11:00:00.500", "2026-11-26", "2024-02-29 12:00")
        found = []
        for unit in ("ms", "us", "ns"):
            path = self.path(unit + ".parquet")
            self.pyarrow.parquet.write_table(self.pyarrow.table({
                "label": [0, 1, 0, 1], "c": self.pyarrow.array(values, self.pyarrow.timestamp(unit))}), path)
            found.append(self.ids_of("parquet", "", path, ["c"]))
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])

    def test_what_csv_says_of_spaces_and_missing_values_holds_for_all_formats(self):
        table = self.pyarrow.table({"label": [0, 1, 0, 1], "c": [" a", "a", "NA", ""]})
        text = self.job_text("csv", ["c"], csv_desc='csv { missing: "NA" %s }')
        for spaces in ("", "keep_spaces: true"):
            millrace.Job.from_text(text % spaces, output_dir=self.path("out")).fit(table, verbose=False)
            scores = millrace.Predictor(self.path("out/model")).predict(table).reshape(-1)
            self.assertEqual(scores[2], scores[3])
            self.assertEqual(scores[0] == scores[1], not spaces)
            for form, dialect, path in self.files_of(table):
                if dialect:
                    continue
                done = self.program("predictor", "--model_dir=" + self.path("out/model"), "--format=" + form, "--input=" + path)
                np.testing.assert_array_equal(np.array(done.stdout.split(), dtype=np.float32), scores, path)

    def train(self, form, *files):
        """Trains on files, and returns what scoring one says: (exit code, standard error)."""
        with open(self.path("job.prototxt"), "w") as out:
            out.write(self.job_text(form, ["c"], "filelist: [%s]" % ", ".join('"%s"' % self.path(name) for name in files)))
        self.program("trainer", "--trainer_desc=" + self.path("job.prototxt"), "--output_dir=" + self.path("out"))

        def score(form, name):
            done = subprocess.run([os.path.join(support.BIN, "predictor"), "--model_dir=" + self.path("out/model"), "--format=" + form,
                                   "--input=" + self.path(name)], capture_output=True, text=True, timeout=300,
                                  env={**os.environ, "MILLRACE_PYTHON": sys.executable})
            return done.returncode, done.stderr
        return score

    def test_a_column_that_is_empty_at_first_is_learned_from_its_first_value(self):
        empty, whole = "1,\n0,\n" * 2500, "1,1\n0,0\n" * 100
        support.write(self.path("late.csv"), "label,c\n" + empty + whole)
        support.write(self.path("empty.csv"), "label,c\n" + empty)
        support.write(self.path("whole.csv"), "label,c\n" + whole)
        support.write(self.path("none.csv"), "")
        support.write(self.path("floats.csv"), "label,c\n1,1.0\n0,0.0\n")
        support.write(self.path("floats.json"), '{"label": 1, "c": 1.0}\n{"label": 0, "c": 0.0}\n')
        support.write(self.path("late.json"), '{"label": 1, "c": null}\n{"label": 0}\n' * 2500 + '{"label": 1, "c": 1}\n{"label": 0, "c": 0}\n' * 50)
        for form, files, first in (("csv", ["late.csv"], "late.csv:5002:3"), ("csv", ["empty.csv", "whole.csv"], "whole.csv:2:3"),
                                   ("csv", ["none.csv", "whole.csv"], "whole.csv:2:3"), ("json", ["late.json"], "late.json:5001:")):
            score = self.train(form, *files)
            for name in ("floats.csv", "floats.json"):
                with self.subTest(files=files, name=name):
                    code, said = score(name.rpartition(".")[2], name)
                    self.assertEqual(code, 0, said)
                    self.assertRegex(said, 'column "c" holds whole numbers as floats: its words are "1.0" .*, and "1" .*' + first)
                    self.assertNotIn("its columns are not those", said)

    def test_columnar_files_without_a_value_say_nothing_of_types(self):
        pyarrow, write = self.pyarrow, {"parquet": self.pyarrow.parquet.write_table, "arrow": self.pyarrow.feather.write_feather}

        def table(values, kind):
            return pyarrow.table({"label": [index % 2 for index in range(len(values))], "c": pyarrow.array(values, kind)})

        for form in ("parquet", "arrow"):
            for first in (table([None] * 4, pyarrow.null()), table([], pyarrow.float64()), table([None] * 4, pyarrow.float64())):
                with self.subTest(form=form, rows=len(first), kind=str(first.schema.field("c").type)):
                    write[form](first, self.path("a." + form))
                    write[form](table([1, 0] * 8, pyarrow.int64()), self.path("b." + form))
                    write[form](table([1.0, 0.0], pyarrow.float64()), self.path("floats." + form))
                    code, said = self.train(form, "a." + form, "b." + form)(form, "floats." + form)
                    self.assertEqual(code, 3, said)
                    self.assertIn('column "c" is of type double, and where the training began, with', said)

    def test_instants_have_the_same_ids_in_every_zone_and_unit(self):
        array, timestamp = self.pyarrow.array, self.pyarrow.timestamp
        values = [value.replace(tzinfo=UTC) for value in times("2026-11-26 10:00:00", "2026-11-26 11:00:00.500", "2026-07-01", "1969-01-01 01:00")]
        zones = ("UTC", "Asia/Tokyo", "America/New_York", "Asia/Kolkata")
        columns = {"%s%d" % (unit, at): array(values, timestamp(unit, zone)) for unit in ("ms", "us", "ns") for at, zone in enumerate(zones)}
        ids = self.check(columns, " ".join('feature { name: "%s" hash { salt: "x" } }' % name for name in columns))
        first = ids["us0"]
        self.assertEqual(len(set(first)), 4)
        for name, found in ids.items():
            if name != "label":
                self.assertEqual(found, first, name)

    def test_date_part_takes_what_the_clock_shows(self):
        values = [value.replace(tzinfo=UTC) for value in times("2026-11-26 10:00:00", "2026-11-26 11:00:00.500", "2026-07-01", "1969-01-01 01:00")]
        ids = self.check({"c": self.pyarrow.array(values, self.pyarrow.timestamp("us", "Asia/Tokyo"))},
                         'feature { name: "c" date_part { part: HOUR } id {} }')
        self.assertEqual(ids["c"], [19, 20, 9, 10])

    def zoned_columns(self):
        """A plain column of times with a zone, by "plain", and others that have its values."""
        array, timestamp, zone = self.pyarrow.array, self.pyarrow.timestamp, "Asia/Tokyo"
        values = [value.replace(tzinfo=UTC) for value in times("2026-11-26 10:00:00", "2026-11-26 11:00:00.500", "2026-07-01", "1969-01-01 01:00")] * 10
        plain = array(values, timestamp("us", zone))
        lists = self.pyarrow.ListArray.from_arrays(list(range(len(values) + 1)), plain)
        return {
            "plain": plain, "list": lists, "large list": lists.cast(self.pyarrow.large_list(plain.type)),
            "list of one size": self.pyarrow.FixedSizeListArray.from_arrays(plain, 1), "dictionary": plain.dictionary_encode(),
            "list of a dictionary": self.pyarrow.ListArray.from_arrays(lists.offsets, plain.dictionary_encode()),
            "slice": self.pyarrow.concat_arrays([lists.slice(0, 4), lists]).slice(4),
            "slice of one size": self.pyarrow.FixedSizeListArray.from_arrays(
                self.pyarrow.concat_arrays([plain.slice(0, 4), plain]), 1).slice(4),
            "chunks": self.pyarrow.chunked_array([lists.slice(0, 3), lists.slice(3, 0), lists.slice(3)])}

    def test_times_in_lists_and_dictionaries_keep_their_zone(self):
        columns, label = self.zoned_columns(), [0, 1] * 20
        for features in ('feature { name: "c" date_part { part: HOUR } id {} }', HASH % "c"):
            job = millrace.Job.from_text(self.job_text("csv", ["c"], features=features), output_dir=self.path("out"))
            job.fit(self.pyarrow.table({"label": label, "c": columns["plain"]}), verbose=False)
            model = millrace.Predictor(self.path("out/model"))
            expected = model.predict(self.pyarrow.table({"c": columns["plain"]}))
            self.assertEqual(len(set(expected.reshape(-1).tolist())), 4)
            for name, column in columns.items():
                table = self.pyarrow.table({"c": column})
                pandas = table.to_pandas(types_mapper=self.pandas.ArrowDtype)
                frames = {"pyarrow": table, "a stream": Stream(table), "pandas": pandas}
                if "list of a dictionary" not in name:
                    frames["polars"] = self.polars.from_arrow(table)
                if name == "dictionary":
                    frames["categories"] = self.pandas.DataFrame({"c": columns["plain"].to_pandas().astype("category")})
                if name == "list":
                    frames["lists of pandas"] = self.pandas.DataFrame({"c": [[one] for one in columns["plain"].to_pandas()]})
                    frames["array of polars"] = frames["polars"].with_columns(self.polars.col("c").list.to_array(1))
                for kind, frame in frames.items():
                    with self.subTest(column=name, frame=kind, features=features):
                        np.testing.assert_array_equal(model.predict(frame), expected)
                if name not in ("list", "list of one size", "dictionary"):
                    continue
                for form, write in (("parquet", self.pyarrow.parquet.write_table), ("arrow", self.pyarrow.feather.write_feather)):
                    if (name, form) == ("dictionary", "parquet"):
                        continue  # pyarrow reads it back in UTC
                    with self.subTest(column=name, file=form, features=features):
                        write(table, self.path("c." + form))
                        done = self.program("predictor", "--model_dir=" + self.path("out/model"), "--format=" + form,
                                            "--without=label", "--input=" + self.path("c." + form))
                        np.testing.assert_array_equal(np.array(done.stdout.split(), dtype=np.float32), expected.reshape(-1))

    def test_models_of_before_have_times_in_lists_as_instants(self):
        columns = self.zoned_columns()
        text = self.job_text("parquet", ["c"]).replace("batch_size", "feature_states { text_rule: 1 } batch_size")
        clock = ["2026-11-26 19:00:00", "2026-11-26 20:00:00.500000", "2026-07-01 09:00:00", "1969-01-01 10:00:00"] * 10
        instants = ["2026-11-26 10:00:00Z", "2026-11-26 11:00:00.500000Z", "2026-07-01 00:00:00Z", "1969-01-01 01:00:00Z"] * 10
        job = millrace.Job.from_text(text, output_dir=self.path("out"))
        job.fit({"label": [0, 1] * 40, "c": clock + instants}, verbose=False)
        model = millrace.Predictor(self.path("out/model"))
        for name, column in columns.items():
            with self.subTest(column=name):
                np.testing.assert_array_equal(model.predict(self.pyarrow.table({"c": column})),
                                              model.predict({"c": clock if name == "plain" else instants}))

    def test_a_zone_that_only_pyarrow_knows_is_refused_by_name_without_it(self):
        job = millrace.Job.from_text(self.job_text("csv", ["c"]), output_dir=self.path("out"))
        job.fit({"label": [0, 1], "c": ["a", "b"]}, verbose=False)
        stream = Stream(self.pyarrow.table({"c": self.zoned_columns()["list"]}))
        frame = millrace._millrace.Frame.of_stream(stream.__arrow_c_stream__(), "rows", {})
        with self.assertRaisesRegex(millrace.DataError, 'column "c" is a list of a time with the zone "Asia/Tokyo"'):
            millrace.Predictor(self.path("out/model"))._predictor.score_frame(frame, ["label"])

    def test_surrogates_are_bad_data_with_column_and_row(self):
        job = millrace.Job.from_text(self.job_text("csv", ["c"]), output_dir=self.path("out"))
        bad = ["a", "b\udcff"]
        message = r"column \"c\": row 1: expected text that UTF-8 can encode, found 'b\\udcff', which has a surrogate"
        frame = self.pandas.DataFrame({"label": [0, 1], "c": self.pandas.Series(bad, dtype=object)})
        for rows in (frame, frame.to_dict("list"), {"label": [0, 1], "c": np.array(bad)}, {"label": [0, 1], "c": [["a"], bad]}):
            with self.assertRaisesRegex(millrace.DataError, message):
                job.fit(rows, verbose=False)
        job.fit({"label": [0, 1], "c": ["a", "b"]}, verbose=False)
        model = millrace.Predictor(self.path("out/model"))
        for rows in (frame[["c"]], {"c": bad}):
            with self.assertRaisesRegex(millrace.DataError, message):
                model.predict(rows)
        with self.assertRaisesRegex(millrace.ConfigError, r"the name of column 'c\\udcff' has a surrogate"):
            model.predict({"c": ["a"], "c\udcff": ["b"]})
        for lines in ("label,c\n0,a\n1,b\udcff\n", ["label,c", "0,a", "1,b\udcff"]):
            with self.assertRaisesRegex(millrace.DataError, r"^lines:3:4: expected text that UTF-8 can encode, found the surrogate '\\udcff'"):
                model.predict_lines(lines)

    def test_what_is_missing_is_said_of_files_of_every_format(self):
        rows = [(0, "NA", " x"), (1, "5", "x"), (0, "7", " x"), (1, "NA", "x")]
        table = self.pyarrow.table({"label": [row[0] for row in rows], "n": [row[1] for row in rows], "w": [row[2] for row in rows]})
        features = 'feature { name: "n" default: "-1" } feature { name: "w" vocabulary { words: ["x"] } }'
        text = ('feature_states { text_rule: 2 } csv { missing: "NA" keep_spaces: true }')
        support.write(self.path("a.json"), "".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        table.to_pandas().to_csv(self.path("a.csv"), index=False)
        self.pyarrow.parquet.write_table(table, self.path("a.parquet"))
        self.pyarrow.feather.write_feather(table, self.path("a.arrow"))
        for form in ("csv", "json", "parquet", "arrow"):
            with self.subTest(form=form):
                ids = self.ids_of(form, text, self.path("a." + form), ["w"], features)
                self.assertEqual([value for batch in ids for value in batch["n"]["values"]], [-1, 5, 7, -1])
                words = [value for batch in ids for value in batch["w"]["values"]]
                self.assertEqual([words[0] == words[1], words[0] == words[2]], [False, True])
        support.write(self.path("a.libsvm"), "0 1:NA 2:5\n1 1:5\n0 1:7 2:NA\n")
        for name, expected in (("1", [9, 5, 7]), ("2", [5, 9, 9])):
            ids = self.ids_of("libsvm", 'csv { missing: "NA" }', self.path("a.libsvm"), ["w"],
                              'feature { name: "w" from: "%s" default: "9" id {} }' % name)
            self.assertEqual([value for batch in ids for value in batch["w"]["values"]], expected)
        ids = self.ids_of("libsvm", 'csv { missing: "NA" }', self.path("a.libsvm"), ["w"], 'feature { name: "w" from: "index" id {} }')
        self.assertEqual([value for batch in ids for value in batch["w"]["values"]], [2, 1, 1])
        support.write(self.path("job.prototxt"), self.job_text("json", ["w"], 'filelist: "%s"' % self.path("a.json"), "",
                                                              'feature { name: "w" from: "n" id {} }'))
        done = subprocess.run([os.path.join(support.BIN, "trainer"), "--trainer_desc=" + self.path("job.prototxt")],
                              capture_output=True, text=True)
        self.assertIn('say csv { missing: "NA" }', done.stderr)

    def test_another_zone_than_in_training_is_warned_of(self):
        hour = 'feature { name: "c" date_part { part: HOUR } hash {} }'
        values = [value.replace(tzinfo=UTC) for value in times("2026-11-26 10:00:00", "2026-11-26 11:00:00.500")] * 10

        def table(zone, values=values):
            if not zone:
                values = [value.replace(tzinfo=None) for value in values]
            return self.pyarrow.table({"label": [0, 1] * (len(values) // 2), "c": self.pyarrow.array(
                values, self.pyarrow.timestamp("us", zone) if zone else self.pyarrow.timestamp("ms"))})

        files = {}
        for zone in ("UTC", "Asia/Tokyo", ""):
            self.folder, kept = self.path((zone or "none").replace("/", "_")), self.folder
            os.makedirs(self.folder)
            files[zone] = [one for one in self.files_of(table(zone)) if not one[1]]
            self.folder = kept

        def warned(work):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                work()
            return [str(one.message) for one in caught if "times with" in str(one.message)]

        for how in ("a frame", "parquet", "csv"):
            for feature, kind in ((hour, "clock"), (HASH % "c", "words")):
                text = self.job_text("csv" if how == "a frame" else how, ["c"], features=feature)
                with open(self.path("job.prototxt"), "w") as out:
                    out.write(text + "".join(' filelist: "%s"' % path for form, _, path in files["UTC"] if form == how))
                if how == "a frame":
                    millrace.Job.from_text(text, output_dir=self.path("out")).fit(table("UTC"), verbose=False)
                else:
                    self.program("trainer", "--trainer_desc=" + self.path("job.prototxt"), "--output_dir=" + self.path("out"))
                model = self.path("out/model")
                for zone, shown in (("UTC", None), ("Asia/Tokyo", "the zone +09:00" if kind == "clock" else None), ("", "no zone")):
                    # Python reads Parquet and Arrow by the same code.
                    for form, _, path in files[zone][:1] + files[zone][-1:] + (files[zone][3:4] if how == "csv" else []):
                        with self.subTest(trained=how, kind=kind, zone=zone, path=path):
                            said = self.program("predictor", "--model_dir=" + model, "--format=" + form, "--input=" + path).stderr
                            self.assertEqual(said.count('column "c" has times with %s, such as' % shown), 1 if shown else 0, said)
                            self.assertEqual("where the training began" in said, bool(shown), said)
                    with self.subTest(trained=how, kind=kind, zone=zone):
                        for frame in (table(zone), table(zone).to_pandas(), self.polars.from_arrow(table(zone))):
                            found = warned(lambda frame=frame: millrace.Predictor(model).predict(frame))
                            self.assertEqual(len(found), 1 if shown else 0, found)
                        if how == "parquet":
                            continue
                        with open(files[zone][0][2]) as lines:
                            text = lines.read()
                        self.assertEqual(len(warned(lambda text=text: millrace.Predictor(model).predict_lines(text))), 1 if shown else 0)

    def test_the_zones_of_summer_and_winter_that_trained_are_not_warned_of(self):
        def table(*days):
            values = [value.replace(tzinfo=UTC) for value in times(*days)] * 20
            return self.pyarrow.table({"label": [0, 1] * (len(values) // 2), "c": self.pyarrow.array(
                values, self.pyarrow.timestamp("us", "Europe/Vienna"))})

        both, summer = table("2026-01-26 10:00:00", "2026-07-26 10:00:00"), table("2026-07-27 10:00:00")
        hour = 'feature { name: "c" date_part { part: HOUR } hash {} }'
        for form, write in (("parquet", self.pyarrow.parquet.write_table), ("arrow", self.pyarrow.feather.write_feather)):
            write(both, self.path("both." + form))
            write(summer, self.path("summer." + form))
            text = self.job_text(form, ["c"], features=hour, files='filelist: "%s"' % self.path("both." + form))
            support.write(self.path("job.prototxt"), text + 'eval { filelist: "%s" }' % self.path("summer." + form))
            said = self.program("trainer", "--trainer_desc=" + self.path("job.prototxt"), "--output_dir=" + self.path(form)).stderr
            self.assertNotIn("warning", said)
            said = self.program("predictor", "--model_dir=" + self.path(form + "/model"), "--input=" + self.path("summer." + form),
                                "--format=" + form).stderr
            self.assertNotIn("warning", said)
        job = millrace.Job.from_text(self.job_text("csv", ["c"], features=hour) + "eval {}", output_dir=self.path("out"))
        with self.assertLogs("millrace", "INFO") as said:
            job.fit(both, eval_data=summer)
        self.assertNotIn("has times with", "\n".join(said.output))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for frame in (summer, summer.to_pandas(), self.polars.from_arrow(summer)):
                millrace.Predictor(self.path("out/model")).predict(frame)

    def test_texts_that_are_not_utf8_are_told_of_frames_as_of_lines(self):
        support.write(self.path("rows.csv"), "label,c\n" + "1,wien\n0,k\u00f6ln\n" * 20)
        support.write(self.path("job.prototxt"), self.job_text("csv", ["c"], files='filelist: "%s"' % self.path("rows.csv")))
        self.program("trainer", "--trainer_desc=" + self.path("job.prototxt"), "--output_dir=" + self.path("out"))
        told = 'column "c": 20 texts are not UTF-8, first "k\\xf6ln" (in the rows); they get other ids than the same texts in UTF-8: ' \
            "convert the data, for example with iconv -f LATIN1 -t UTF-8"
        for encoding, count in (("latin-1", 1), ("utf-8", 0)):
            values = ["wien".encode(encoding), "k\u00f6ln".encode(encoding)] * 20
            lists = [[value, b"rom"] for value in values]
            binary = self.pyarrow.array(values, self.pyarrow.binary())
            arrow = self.pyarrow.table({"c": binary})
            frames = {
                "lists": {"c": values}, "numpy objects": {"c": np.array(values, dtype=object)}, "numpy bytes": {"c": np.array(values)},
                "lists of lists": {"c": lists}, "arrow": arrow, "a batch of arrow": arrow.to_batches()[0],
                "views": self.pyarrow.table({"c": binary.cast(self.pyarrow.binary_view())}),
                "a dictionary": self.pyarrow.table({"c": binary.dictionary_encode()}),
                "arrow lists": self.pyarrow.table({"c": self.pyarrow.array(lists, self.pyarrow.list_(self.pyarrow.binary()))}),
                "pandas": self.pandas.DataFrame({"c": values}), "polars": self.polars.DataFrame({"c": values}),
            }
            self.pyarrow.parquet.write_table(arrow, self.path("rows.parquet"))
            frames["parquet"] = self.path("rows.parquet")
            for name, frame in frames.items():
                with self.subTest(frame=name, encoding=encoding), warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    millrace.Predictor(self.path("out/model")).predict(frame)
                    said = [str(one.message) for one in caught if "UTF-8" in str(one.message)]
                    self.assertEqual(len(said), count, said)
                    self.assertIn(told if count else "", "".join(said))
        job = millrace.Job.from_text(self.job_text("csv", ["c"]) + "eval {}", output_dir=self.path("fitted"))
        latin = self.pyarrow.table({"label": [0, 1] * 20, "c": self.pyarrow.array([b"wien", b"k\xf6ln"] * 20, self.pyarrow.binary())})
        with self.assertLogs("millrace", "INFO") as said:
            job.fit(latin, eval_data=latin.slice(0, 20))
        self.assertEqual("\n".join(said.output).count("20 texts are not UTF-8"), 1, said.output)

    def test_what_columnar_lists_begin_with_is_noted(self):
        array, lists = self.pyarrow.array, self.pyarrow.list_
        for form, write in (("parquet", self.pyarrow.parquet.write_table), ("arrow", self.pyarrow.feather.write_feather)):
            write(self.pyarrow.table({"label": [0, 1] * 8, "c": array([[7, 8], []] * 8, lists(self.pyarrow.int64()))}), self.path("a." + form))
            support.write(self.path("job.prototxt"), self.job_text(form, ["c"], files='filelist: "%s"' % self.path("a." + form)))
            self.program("trainer", "--trainer_desc=" + self.path("job.prototxt"), "--output_dir=" + self.path(form))
            with open(self.path(form + "/model/MODEL"), encoding="utf-8") as file:
                self.assertRegex(file.read(), r'whole_number \{\s*column: "c"\s*text: "7"')

    def test_milliseconds_that_are_all_in_1970_are_warned_of(self):
        year = 'feature { name: "c" date_part { part: YEAR format: EPOCH_%s } id {} hash {} }'.replace("id {} ", "")
        for unit, values, is_told in (("MILLISECONDS", (1413849600, 1413892800), True), ("SECONDS", (1413849600, 1413892800), False),
                                      ("MILLISECONDS", (1413849600, 1413892800000), False)):
            support.write(self.path("t.csv"), "label,c\n1,%d\n0,%d\n" % values)
            text = self.job_text("csv", ["c"], 'filelist: "%s"' % self.path("t.csv"), features=year % unit)
            support.write(self.path("job.prototxt"), text)
            said = [self.program("inspect", "head", "--trainer_desc=" + self.path("job.prototxt")).stderr,
                    self.program("trainer", "--trainer_desc=" + self.path("job.prototxt"), "--output_dir=" + self.path("out")).stderr,
                    self.program("predictor", "--model_dir=" + self.path("out/model"), "--input=" + self.path("t.csv")).stderr]
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                millrace.Predictor(self.path("out/model")).predict({"c": list(values)})
            said.append(" ".join(str(one.message) for one in caught))
            for one in said:
                self.assertEqual('column "c" as EPOCH_MILLISECONDS has times of 1970 alone' in one, is_told, one)

    def test_models_of_before_keep_the_texts_of_each_format(self):
        table = self.pyarrow.table({"label": [0, 1] * 20, "c": [" Wien", "Graz "] * 20, "d": self.pyarrow.array(
            [123456789.0, 5.5] * 20, self.pyarrow.float32())})
        text = self.job_text("parquet", ["c", "d"]).replace("batch_size", "feature_states { text_rule: 1 } batch_size")
        job = millrace.Job.from_text(text, output_dir=self.path("out"))
        job.fit(table, verbose=False)
        self.assertIn("text_rule: 1", job.config)
        model = millrace.Predictor(self.path("out/model"))
        old = self.pyarrow.table({"c": [" Wien"], "d": self.pyarrow.array([123456789.0], self.pyarrow.float32())})
        texts = self.pyarrow.table({"c": [" Wien", "Wien"], "d": ["123456792.0", "123456790.0"]})
        scores = model.predict(texts).reshape(-1)
        self.assertEqual(model.predict(old).reshape(-1)[0], scores[0])
        self.assertNotEqual(scores[0], scores[1])


if __name__ == "__main__":
    unittest.main()
