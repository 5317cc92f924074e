"""Features: the same rows score alike in an evaluation, in `predictor` and in Python, whatever stands in their columns."""

import os
import random
import re
import subprocess
import tempfile
import unittest
import warnings

import support

import numpy as np

import millrace

JOB = """
thread_num: 1
update_mode: SERIAL
filelist: "%(folder)s/train.csv"
data_desc {
  name: "csv"
  batch_size: 64
  bad_lines { action: QUARANTINE max_lines: 100000 max_fraction: 1 quarantine_path: "%(folder)s/bad.txt" }
  csv { missing: ["?", "NA"] }
  feature { name: "label" from: "click" id {} is_dense: true }
  feature { name: "age" default_from: MEDIAN clip { min: 0 max: 120 } standardize {} }
  feature { name: "age_band" from: "age" bucketize { quantiles: 8 } is_used: false }
  feature { name: "city" vocabulary { min_count: 2 } hash {} }
  feature { name: "tags" split { by: "|" } strip: " " hash {} }
  feature { name: "words" from: "title" split { by: " " } ngrams { most: 2 } hash {} }
  feature { name: "hour" from: "time" date_part { part: HOUR } hash {} }
  feature { name: "price" default: "0" clip { min: 0 } log1p {} }
  feature { name: "x" from: "city" of: "age_band" cross {} }
}
model {
  table { name: "t" dim: 4 init { uniform: 0.1 } optimizer { adagrad { lr: 0.05 } } }
  layer { name: "e" embedding { slots: ["city", "tags", "words", "hour", "x"] table: "t" } }
  layer { name: "h" fc { in: ["e", "age", "price"] units: 8 act: RELU } }
  layer { name: "y" fc { in: "h" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  metric { kind: AUC }
  optimizer { adagrad { lr: 0.1 } }
}
"""

USERS = """
thread_num: 1
update_mode: SERIAL
filelist: "%(folder)s/users.csv"
data_desc {
  name: "csv"
  batch_size: 4
  feature { name: "label" from: "click" id {} is_dense: true }
  feature { name: "user" hash {} }
}
model {
  table { name: "t" dim: 1 optimizer { adagrad { lr: 0.05 } } }
  layer { name: "e" embedding { slots: "user" table: "t" } }
  layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { sgd { lr: 0.1 } }
}
"""

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ["click", "age", "city", "tags", "title", "time", "price"]
CITIES = ["Wien", "Zürich", "東京", "São Paulo", "a, b", 'the "city"', "N\u0303", "x" * 300]


def quoted(text, rng):
    if any(c in text for c in ',"') or text != text.strip() or rng.random() < 0.1:
        return '"%s"' % text.replace('"', '""')
    return text


def cell(column, rng, odd):
    """A value of a column; with `odd`, one that is missing, was never seen, or is malformed, now and then."""
    if odd and column != "click" and rng.random() < 0.15:
        return rng.choice(["", "?", "NA"])
    if odd and rng.random() < 0.01:
        return rng.choice(["zzz", "1e", "\u202e1", "--", "2024-02-30", "0x1f", "1_000"])
    if column == "click":
        return rng.choice("01")
    if column == "age":
        return rng.choice(["%d", "%d.5", "%de0", "+%d"]) % rng.randrange(150)
    if column == "city":
        return "city %d" % rng.randrange(10**6) if odd and rng.random() < 0.3 else rng.choice(CITIES)
    if column == "tags":
        return "|".join(rng.choice([" a ", "ß", "c", "", "d%d" % rng.randrange(50)]) for _ in range(rng.randrange(5)))
    if column == "title":
        return " ".join(rng.choice(["the", "œuvre", "of", "x\u0000y"[:1], "ك"]) for _ in range(rng.randrange(6)))
    if column == "time":
        return "2024-%02d-%02d %02d:30" % (rng.randrange(1, 13), rng.randrange(1, 29), rng.randrange(24))
    return rng.choice(["%d", "%.2f", "-%d"]) % rng.randrange(10**5)


def write(path, columns, rows, seed, odd):
    rng = random.Random(seed)
    lines = [",".join(columns)]
    for _ in range(rows):
        row = {column: cell(column, rng, odd) for column in COLUMNS}
        lines.append(",".join(quoted(row.get(column, "junk"), rng) for column in columns))
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write("\n".join(lines) + "\n")
    return lines


def score_odd(folder, job):
    """Scores odd.csv by an evaluation; what it left out as bad, it says by line: {line: (column, message)}."""
    support.run("trainer", "--trainer_desc=" + job, "--output_dir=" + folder + "/out", "--resume=auto", "--set=infer=true",
                "--set=filelist=\"%s/odd.csv\"" % folder, "--set=dump_fields=\"y\"", "--set=dump_fields_path=\"%s/dump\"" % folder,
                "--set=dump_file_num=1")
    dumped = [float(line.split(":")[-1]) for line in support.read(folder + "/dump/part-000-00000").splitlines()]
    places = [re.match(r".*?odd\.csv:(\d+):(\d+): (.*?)\t", line) for line in support.read(folder + "/bad.txt").splitlines()]
    return dumped, {int(place.group(1)): (place.group(2), place.group(3)) for place in places}


class FeaturesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = cls._folder.name
        write(cls.folder + "/train.csv", COLUMNS, 2000, 1, odd=False)
        cls.job = cls.folder + "/job.prototxt"
        with open(cls.job, "w", encoding="utf-8") as file:
            file.write(JOB % {"folder": cls.folder})
        support.run("trainer", "--trainer_desc=" + cls.job, "--output_dir=" + cls.folder + "/out")
        cls.model = cls.folder + "/out/model"

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def test_notes_about_columns_are_said_once_a_job(self):
        write(self.folder + "/moved.csv", COLUMNS[::-1], 100, 3, odd=False)
        for _ in range(2):
            job = millrace.Job(self.job, overrides=["filelist+=\"%s/moved.csv\"" % self.folder, "epochs=2"])
            with self.assertLogs("millrace", "INFO") as said:
                job.run()
            notes = [line for line in said.output if "moved.csv:1: its columns are not those of the first file" in line]
            self.assertEqual(len(notes), 1, said.output)

    def test_ten_thousand_odd_rows_score_alike_everywhere(self):
        columns = ["extra"] + COLUMNS[::-1]
        lines = write(self.folder + "/odd.csv", columns, 10000, 2, odd=True)
        dumped, bad = score_odd(self.folder, self.job)
        self.assertGreater(len(bad), 100)  # predictor and Python refuse the same lines
        self.assertEqual(len(dumped), 10000 - len(bad))
        good = [line for number, line in enumerate(lines, 1) if number not in bad]
        with open(self.folder + "/good.csv", "w", encoding="utf-8") as file:
            file.write("\n".join(good) + "\n")
        scored = support.run("predictor", "--model_dir=" + self.model, "--input=" + self.folder + "/good.csv").split()
        predictor = millrace.Predictor(self.model)
        from_python = predictor.predict_lines("\n".join(good))
        self.assertEqual(from_python.shape, (10000 - len(bad),))
        self.assertTrue((np.array(scored, dtype=np.float32) == from_python).all())
        np.testing.assert_allclose(np.array(dumped), from_python, rtol=0, atol=1e-6)
        self.assertGreater(np.unique(from_python).size, 9000 - len(bad))
        for number, (column, message) in sorted(bad.items())[:100]:
            with self.assertRaises(millrace.DataError) as caught:
                predictor.predict_lines([lines[0], lines[number - 1]])
            self.assertIn("lines:2:%s: %s" % (column, message), str(caught.exception))

    @unittest.skipUnless(os.environ.get("ONNXRUNTIME_PYTHON"), "ONNXRUNTIME_PYTHON is not set (scripts/peers onnx)")
    def test_ten_thousand_odd_rows_score_alike_in_onnx(self):
        """ONNX has no features: it is fed what they make, of a table that has an end."""
        folder = self.folder + "/onnx"
        os.mkdir(folder)
        text = JOB % {"folder": folder} + 'output { export { format: ONNX vocabulary: 5000 } }\n'
        for learnt, fixed in ((" standardize {}", ""), ("quantiles: 8", "boundaries: [20, 40, 60]"),
                              ("vocabulary { min_count: 2 } hash {}", "hash {}"), ("hash {}", "hash { buckets: 5000 }"),
                              ("cross {}", "cross { buckets: 5000 }")):
            self.assertIn(learnt, text)
            text = text.replace(learnt, fixed)
        with open(folder + "/job.prototxt", "w", encoding="utf-8") as file:
            file.write(text)
        write(folder + "/train.csv", COLUMNS, 2000, 1, odd=False)
        support.run("trainer", "--trainer_desc=" + folder + "/job.prototxt", "--output_dir=" + folder + "/out")
        lines = write(folder + "/odd.csv", COLUMNS, 10000, 3, odd=True)
        dumped, bad = score_odd(folder, folder + "/job.prototxt")
        with open(folder + "/good.csv", "w", encoding="utf-8") as file:
            file.write("\n".join(line for number, line in enumerate(lines, 1) if number not in bad) + "\n")
        with open(folder + "/slots", "w", encoding="utf-8") as file:
            file.write(support.run("inspect", "head", "--trainer_desc=" + folder + "/job.prototxt", "--batches=1000000",
                                   "--format=multi_slot", "--set=filelist=\"%s/good.csv\"" % folder))
        onnx_runner = os.path.join(os.path.dirname(HERE), "paddle", "onnx_runner.py")
        subprocess.run([os.environ["ONNXRUNTIME_PYTHON"], onnx_runner, folder + "/out/onnx/offline.onnx", folder + "/slots",
                        "label,age,city,tags,words,hour,price,x", folder + "/scores"], check=True)
        from_onnx = np.array([float(line) for line in support.read(folder + "/scores").splitlines()])
        scored = support.run("predictor", "--model_dir=" + folder + "/out/model", "--input=" + folder + "/good.csv").split()
        self.assertEqual(len(from_onnx), 10000 - len(bad))
        np.testing.assert_allclose(np.array(scored, dtype=np.float32), from_onnx, rtol=0, atol=1e-5)
        np.testing.assert_allclose(np.array(dumped), from_onnx, rtol=0, atol=1e-5)

    def test_lines_may_lack_the_label_and_what_no_feature_takes(self):
        predictor = millrace.Predictor(self.model)
        full = ["click,age,city,tags,title,time,price", "1,20,Wien,a|b,the of,2024-01-01,3"]
        bare = ["price,time,title,tags,city,age", "3,2024-01-01,the of,a|b,Wien,20"]
        self.assertEqual(predictor.predict_lines(full)[0], predictor.predict_lines(bare, without="label")[0])
        self.assertEqual(predictor.predict_lines(full)[0], predictor.predict_lines(bare)[0])
        with self.assertRaisesRegex(millrace.DataError, '^lines:1: the header has no column "age"$'):
            predictor.predict_lines([bare[0].replace("age", "years"), bare[1]])
        self.assertEqual(predictor.predict_lines("").shape, (0,))
        self.assertEqual(predictor.predict_lines(full[:1]).shape, (0,))

    def test_ids_that_lines_write_as_floats_are_told_once(self):
        with open(self.folder + "/users.csv", "w", encoding="utf-8") as file:
            file.write("click,user\n" + "1,5\n0,6\n" * 8)
        job = millrace.Job.from_text(USERS % {"folder": self.folder}, output_dir=self.folder + "/users")
        job.run()
        predictor = millrace.Predictor(self.folder + "/users/model")
        with self.assertWarnsRegex(millrace.MillraceWarning, r'as floats: its words are "5.0" \(byte 1 of its line\), and "5"'):
            scores = predictor.predict_lines(["user", "5.0"], without="label")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(predictor.predict_lines(["user", "5.0"], without="label"), scores)

    def test_a_job_takes_statistics_and_goes_on_with_them(self):
        out = self.folder + "/job"
        text = JOB % {"folder": self.folder}
        job = millrace.Job.from_text(text, output_dir=out)
        job.run()
        again = millrace.Job.from_text(text.replace("update_mode", "epochs: 2 update_mode"), output_dir=out)
        again.run(resume="auto")
        self.assertTrue(os.path.exists(out + "/model/MODEL"))


if __name__ == "__main__":
    unittest.main()
