"""Predictor: the scores of the program `predictor`, from lines and from arrays."""

import multiprocessing
import os
import pickle
import shutil
import subprocess
import tempfile
import threading
import unittest
import warnings

import support

import numpy as np

import millrace


CITY = """filelist: "%(train)s"
data_desc {
  name: "csv" batch_size: 16
  feature { name: "label" id {} is_dense: true }
  feature { name: "city" %(step)s }
}
model {
  table { name: "t" dim: 2 }
  layer { name: "e" embedding { slots: ["city"] table: "t" } }
  layer { name: "y" fc { in: "e" units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" }
  optimizer { adagrad { lr: 0.05 } }
}
%(eval)s
"""


class PredictorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = cls._folder.name
        cls.rows = support.write_log(cls.folder, 1200, parts=1)
        millrace.Job.from_text(support.WIDE_DEEP % {"folder": cls.folder}, output_dir=cls.folder + "/out").run()
        cls.model = cls.folder + "/out/model"
        scored = support.run("predictor", "--model_dir=" + cls.model, "--input=" + cls.folder + "/part-0")
        cls.wanted = np.array([float(text) for text in scored.split()], dtype=np.float32)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def columns(self, rows=None):
        rows = self.rows if rows is None else rows
        columns = {"dense": np.array([dense for _, dense, _ in rows])}
        for slot in range(3):
            columns["C%d" % (slot + 1)] = [ids[slot] for _, _, ids in rows]
        return columns

    def test_lines_score_as_in_the_program(self):
        predictor = millrace.Predictor(self.model)
        text = support.read(self.folder + "/part-0")
        scores = predictor.predict_lines(text)
        self.assertEqual((scores.dtype, scores.shape), (np.float32, (1200,)))
        self.assertTrue((scores == self.wanted).all())
        self.assertTrue((predictor.predict_lines(text.encode()) == self.wanted).all())
        self.assertTrue((predictor.predict_lines(text.splitlines()) == self.wanted).all())
        with open(self.folder + "/part-0", "rb") as file:
            self.assertTrue((predictor.predict_lines(file) == self.wanted).all())
        self.assertEqual(predictor.predict_lines("").shape, (0,))

    def test_a_model_of_several_losses_has_a_column_for_each(self):
        text = support.WIDE_DEEP % {"folder": self.folder}
        loss = next(line for line in text.splitlines() if line.strip().startswith("loss {")).strip()
        both = loss.replace("loss {", 'loss { name: "all" ', 1) + " " + loss.replace(
            "loss {", 'loss { name: "few" class_weight: [1, 3] ', 1)
        out = self.folder + "/two"
        millrace.Job.from_text(text.replace(loss, both), output_dir=out).run()
        predictor = millrace.Predictor(out + "/model")
        self.assertEqual(predictor.predictions, ["all", "few"])
        scores = predictor.predict_lines(support.read(self.folder + "/part-0"))
        self.assertEqual(scores.shape, (1200, 2))
        self.assertTrue((predictor.predict(self.columns()) == scores).all())
        scored = support.run("predictor", "--model_dir=" + out + "/model", "--input=" + self.folder + "/part-0")
        wanted = np.array([line.split("\t") for line in scored.splitlines()], dtype=np.float32)
        self.assertTrue((wanted == scores).all())
        few = millrace.Predictor(out + "/model", prediction="few")
        self.assertEqual(few.predictions, ["few"])
        self.assertTrue((few.predict_lines(support.read(self.folder + "/part-0")) == scores[:, 1]).all())
        with self.assertRaisesRegex(millrace.ConfigError, 'it returns: all, few'):
            millrace.Predictor(out + "/model", prediction="other")

    def test_lines_may_lack_what_no_score_depends_on(self):
        predictor = millrace.Predictor(self.model)
        lines = [support.line(row, with_label=False) for row in self.rows[:5]]
        for without in (["label"], "label"):
            self.assertTrue((predictor.predict_lines(lines, without=without) == self.wanted[:5]).all())
        with self.assertRaisesRegex(millrace.ConfigError, 'the score depends on slot "dense"'):
            predictor.predict_lines(lines, without=["dense"])
        with self.assertRaisesRegex(millrace.ConfigError, 'the model has no slot "labl"; it has: label, dense, C1'):
            predictor.predict_lines(lines, without=["labl"])

    def test_arrays_score_as_lines_do(self):
        predictor = millrace.Predictor(self.model)
        columns = self.columns()
        self.assertTrue((predictor.predict(columns) == self.wanted).all())
        for slot in ("C1", "C2", "C3"):
            columns[slot] = millrace.create_lod_tensor(np.concatenate([np.array(ids) for ids in columns[slot]]),
                                                       [[len(ids) for ids in columns[slot]]])
        columns["dense"] = columns["dense"].astype(np.float32)
        columns["label"] = np.zeros(1200)
        self.assertTrue((predictor.predict(columns) == self.wanted).all())

    def test_an_array_of_ids_has_the_same_number_in_every_row(self):
        predictor = millrace.Predictor(self.model)
        columns = self.columns(self.rows[:4])
        lists = dict(columns, C1=[[1, 2], [3, 4], [5, 6], [7, 8]], C2=[[9]] * 4)
        arrays = dict(columns, C1=np.array([[1, 2], [3, 4], [5, 6], [7, 8]], dtype=np.int32), C2=np.full(4, 9))
        self.assertTrue((predictor.predict(lists) == predictor.predict(arrays)).all())

    def test_ids_keep_their_64_bits(self):
        predictor = millrace.Predictor(self.model)
        columns = self.columns(self.rows[:1])
        arrays = dict(columns, C1=[np.array([2 ** 63 + 1, 1, 2 ** 64 - 1], dtype=np.uint64)])
        for ids in ([2 ** 63 + 1, 1, 2 ** 64 - 1], [np.uint64(2 ** 63 + 1), 1, 2 ** 64 - 1]):
            self.assertTrue((predictor.predict(dict(columns, C1=[ids])) == predictor.predict(arrays)).all(), ids)

    def test_zeros_that_training_left_out_are_left_out_of_lines_and_columns(self):
        job = (support.WIDE_DEEP % {"folder": self.folder}).replace("batch_size: 16", "batch_size: 16 zeros: DROP")
        millrace.Job.from_text(job, output_dir=self.folder + "/dropping").run()
        predictor = millrace.Predictor(self.folder + "/dropping/model")
        row, with_zeros = (1, [0.5, 1], [[3], [4, 5], [0]]), (1, [0.5, 1], [[0, 3], [4, 0, 5, 0], [0]])
        wanted = predictor.predict_lines(support.line(row))
        told = "3 zeros of sparse slots were left out, as in training"
        with self.assertWarnsRegex(millrace.MillraceWarning, told):
            self.assertEqual(predictor.predict_lines(support.line(with_zeros)), wanted)
        with self.assertWarnsRegex(millrace.MillraceWarning, told):
            self.assertEqual(predictor.predict(self.columns([with_zeros])), wanted)
        keeping = millrace.Predictor(self.model)
        self.assertNotEqual(keeping.predict(self.columns([with_zeros])), keeping.predict(self.columns([row])))
        self.assertEqual(keeping.predict(self.columns([with_zeros])), keeping.predict_lines(support.line(with_zeros)))

    def test_columns_that_do_not_fit_are_named(self):
        predictor = millrace.Predictor(self.model)
        columns = self.columns(self.rows[:4])
        for wrong, message in [
                ({"C1": None}, "the score depends on slots that are not there: C1"),
                ({"dense": np.zeros((4, 3))}, r'slot "dense" is dense with 2 values a row: give an array \[rows, 2\]'),
                ({"dense": np.zeros((5, 2))}, 'slot "C1" has 4 rows, but slot "dense" has 5'),
                ({"C2": [[1.5]] * 4}, 'slot "C2" holds ids; give integers, not float64'),
                ({"C2": [[2 ** 64]] * 4}, 'slot "C2": 18446744073709551616 does not fit 64 bits'),
                ({"dense": [[None, 1]] * 4}, 'slot "dense" holds floats; give numbers, not object'),
                ({"dense": np.zeros((4, 2)) + 1j}, 'slot "dense" holds floats; give numbers, not complex128'),
                ({"C3": ([1, 2, 3], [1, 1, 1, 1])}, 'slot "C3" has 2 rows, but slot "dense" has 4'),  # a tuple is a list of rows
                ({"C3": 3}, 'slot "C3": a list with a sequence for each row, an array or a LoDTensor, not 3'),
                ({"C2": [[1], [2], [3, -1], [4]]}, r'slot "C2": an id is 0 to 2\*\*64 - 1, and -1 \(row 2, value 1, from 0\) is below 0'),
                ({"C2": np.array([[1, 2], [3, 4], [5, -1], [7, 8]])}, r"and -1 \(row 2, value 1, from 0\) is below 0"),
                ({"C2": [[2 ** 63 + 1, -1]] * 4}, r"an id is 0 to 2\*\*64 - 1, and -1 is below 0"),
                ({"C4": [[1]] * 4}, 'the model has no slot "C4"')]:
            given = dict(columns, **wrong)
            if wrong == {"C1": None}:
                del given["C1"]
            with self.assertRaisesRegex(millrace.ConfigError, message):
                predictor.predict(given)
        with self.assertRaisesRegex(millrace.ConfigError, r'slot "dense" is dense with 2 values a row: .*, not \[4, 3\]'):
            predictor.predict({"dense": np.zeros((4, 3))})  # although slots are missing, too
        with self.assertRaisesRegex(millrace.ConfigError, r"a dict of values by slot, not an array \[4, 2\]; the score depends on dense, C1, C2, C3$"):
            predictor.predict(np.zeros((4, 2)))

    def test_a_tuple_of_two_rows_is_two_rows(self):
        predictor = millrace.Predictor(self.model)
        columns = self.columns(self.rows[:2])
        wanted = predictor.predict(columns)
        tuples = dict(columns, **{slot: tuple(np.array(ids) for ids in columns[slot]) for slot in ("C1", "C2", "C3")})
        self.assertTrue((predictor.predict(tuples) == wanted).all())
        # What would read as values with lengths is two rows as well.
        columns["C1"] = ([7, 8], [2])
        self.assertTrue((predictor.predict(columns) == predictor.predict(dict(columns, C1=[[7, 8], [2]]))).all())

    def test_floats_that_are_not_finite_are_said_with_their_place(self):
        columns = self.columns(self.rows[:4])
        columns["dense"] = np.array([[0, 1], [2, 3], [4, np.nan], [np.inf, 1]])
        with self.assertWarnsRegex(millrace.MillraceWarning,
                                   r'slot "dense": nan \(row 2, value 1, from 0\) and 1 more that are not finite'):
            millrace.Predictor(self.model).predict(columns)

    def test_scores_of_lines_that_are_not_finite_are_said(self):
        lines = [support.line((0, [0.5, dense], [[3], [4], [5]])) for dense in (1.0, float("nan"), 2.0)]
        with self.assertWarnsRegex(millrace.MillraceWarning, "1 of 3 scores are not finite; the first: nan of row 1 .rows count from 0."):
            scores = millrace.Predictor(self.model).predict_lines(lines)
        self.assertEqual(np.isnan(scores).tolist(), [False, True, False])

    def test_a_masked_value_is_refused_not_scored(self):
        predictor = millrace.Predictor(self.model)
        columns = self.columns(self.rows[:4])
        dense, ids = np.array(columns["dense"]), np.array([[1, 2], [3, 4], [5, 6], [7, 8]])
        masked = np.ma.masked_array(dense, mask=dense == dense[0, 0])
        for wrong, message in [
                ({"dense": masked}, 'slot "dense": 1 of 8 values are masked, and no tensor has a mask'),
                ({"dense": list(masked)}, 'slot "dense": 1 of 2 values are masked'),
                ({"dense": [[np.ma.masked, 1.0]] + [[1.0, 1.0]] * 3}, 'slot "dense": 1 of 1 values are masked'),
                ({"C1": np.ma.masked_equal(ids, 3)}, 'slot "C1": 1 of 8 values are masked'),
                ({"C1": [np.ma.masked_equal(row, 3) for row in ids]}, 'slot "C1": 1 of 2')]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                predictor.predict(dict(columns, **wrong))
        with self.assertRaisesRegex(millrace.ConfigError, "create_lod_tensor: data: 1 of 8 values are masked"):
            millrace.create_lod_tensor(np.ma.masked_equal(ids.reshape(-1), 3), [[2] * 4])
        nothing = dict(columns, dense=np.ma.masked_array(dense), C1=np.ma.masked_equal(ids, 99))
        self.assertTrue((predictor.predict(nothing) == predictor.predict(dict(columns, C1=ids))).all())

    def test_a_predictor_comes_back_from_a_pickle_and_from_a_process(self):
        predictor = millrace.Predictor(self.model)
        columns = self.columns()
        again = pickle.loads(pickle.dumps(predictor))
        self.assertTrue((again.predict(columns) == self.wanted).all())
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assertTrue((pool.apply(predictor.predict, (columns,)) == self.wanted).all())

    def test_a_pickle_of_a_model_that_was_replaced_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(self.model, folder + "/model")
            pickled = pickle.dumps(millrace.Predictor(folder + "/model"))
            millrace.Job.from_text(support.WIDE_DEEP % {"folder": self.folder}, overrides=["seed=7"], output_dir=folder + "/out").run()
            shutil.rmtree(folder + "/model")
            with self.assertRaisesRegex(millrace.NotFoundError, "is no saved model"):
                pickle.loads(pickled)
            os.rename(folder + "/out/model", folder + "/model")
            with self.assertRaisesRegex(millrace.ConfigError, "is another one than the Predictor was pickled with"):
                pickle.loads(pickled)

    def test_lines_without_a_header_may_lack_columns_that_no_score_depends_on(self):
        path = os.path.join(self.folder, "bare.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines("%d,%s\n" % (i % 2, "abc"[i % 3]) for i in range(60))
        text = CITY.replace('name: "csv"', 'name: "csv" csv { names: ["click", "city"] }').replace('name: "label"', 'name: "label" from: "click"')
        millrace.Job.from_text(text % {"train": path, "step": "hash {}", "eval": ""}, output_dir=self.folder + "/bare").run()
        model = millrace.Predictor(self.folder + "/bare/model")
        whole = model.predict_lines("1,a\n0,b\n", without="label")
        np.testing.assert_array_equal(model.predict_lines("a\nb\n", without="label"), whole)
        with self.assertRaisesRegex(millrace.ConfigError, r"no slot \"click\", but a column, which without=\['label'\] leaves out"):
            model.predict_lines("a\n", without="click")
        with self.assertRaisesRegex(millrace.ConfigError, "a data frame, or a dict of columns .arrays or lists., not a list"):
            model.predict([{"city": "a"}])

    def test_a_bad_line_is_named_by_its_number(self):
        with self.assertRaises(millrace.DataError) as caught:
            millrace.Predictor(self.model).predict_lines([support.line(self.rows[0]), "1 0 2 0.5 oops 1 1 1 1 1 1"])
        self.assertTrue(str(caught.exception).startswith('lines:2:11: slot "dense"'), str(caught.exception))

    def test_threads_share_a_predictor(self):
        predictor = millrace.Predictor(self.model)
        columns = self.columns()
        equal = []

        def score():
            for _ in range(5):
                equal.append(bool((predictor.predict(columns) == self.wanted).all()))
        threads = [threading.Thread(target=score) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(equal, [True] * 20)

    def started(self, *flags):
        process = subprocess.Popen([os.path.join(support.BIN, "predictor"), "--model_dir=" + self.model, *flags],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        return process

    def test_the_program_answers_each_line_before_the_next_is_written(self):
        for flags in (["--batch_size=1"], [], ["--pipe_command=sed -u s/x/y/"]):
            with self.subTest(flags):
                process = self.started(*flags)
                for row in range(5):
                    process.stdin.write(support.line(self.rows[row]) + "\n")
                    self.assertEqual(np.float32(process.stdout.readline()), self.wanted[row])
                # Several lines at once, of which the last one has not ended.
                process.stdin.write("".join(support.line(row) + "\n" for row in self.rows[5:8]) + "1 1")
                process.stdin.flush()
                self.assertEqual([np.float32(process.stdout.readline()) for _ in range(3)], list(self.wanted[5:8]))
                process.stdin.write(support.line(self.rows[8])[3:])
                process.stdin.close()
                self.assertEqual(np.float32(process.stdout.readline()), self.wanted[8])
                self.assertEqual((process.stdout.readline(), process.wait()), ("", 0))

    def test_the_program_scores_what_stands_before_a_bad_line(self):
        process = self.started()
        process.stdin.write("".join(support.line(row) + "\n" for row in self.rows[:3]) + "bad\n")
        process.stdin.close()
        scores = [np.float32(line) for line in process.stdout.read().split()]
        self.assertEqual((scores, process.wait()), (list(self.wanted[:3]), 3))

    def test_the_program_scores_small_batches_and_pipes_by_one_thread(self):
        process = self.started("--batch_size=1")
        process.stdin.write(support.line(self.rows[0]) + "\n")
        process.stdout.readline()
        # That one, and the one that makes signals a stop request.
        self.assertLessEqual(len(os.listdir("/proc/%d/task" % process.pid)), 2)

    def test_batches_of_any_size_and_pipes_score_alike(self):
        text = support.read(self.folder + "/part-0")
        for flags in (["--batch_size=1"], ["--batch_size=7"], ["--batch_size=64"], ["--batch_size=5000"]):
            named = support.run("predictor", "--model_dir=" + self.model, "--input=" + self.folder + "/part-0", *flags)
            piped = subprocess.run([os.path.join(support.BIN, "predictor"), "--model_dir=" + self.model, *flags], input=text,
                                   capture_output=True, text=True, check=True).stdout
            self.assertEqual(np.array(named.split(), np.float32).tolist(), self.wanted.tolist())
            self.assertEqual(piped, named)

    def test_calls_make_no_threads_feeds_or_sessions(self):
        predictor = millrace.Predictor(self.model)
        columns, line = self.columns(), support.line(self.rows[0])

        def calls():
            predictor.predict(columns)
            predictor.predict_lines(line)
        calls()
        before = predictor._predictor.scorers_made(), millrace._millrace.workers_made()
        self.assertEqual(before[0], 1)
        for _ in range(20):
            calls()
        self.assertEqual((predictor._predictor.scorers_made(), millrace._millrace.workers_made()), before)

    def test_rows_that_mean_something_else_than_in_training_are_told(self):
        words = ["wien", "k\u00f6ln", "paris", "NA", "rom"]

        def write(name, rows, spell=str, encoding="utf-8"):
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding=encoding) as file:
                file.write("label,city\n" + "".join("%d,%s\n" % (i % 2, spell(words[i % 5])) for i in range(rows)))
            return path
        train, known = write("city.csv", 400), write("city_known.csv", 100)
        upper, latin = write("city_upper.csv", 100, str.upper), write("city_latin.csv", 100, encoding="latin-1")
        missing = write("city_missing.csv", 100, lambda word: "" if word == "NA" else word)
        evaluated = 'slot "city": 80 %% of its values %s, and 0 %% in the evaluation before'
        not_utf8 = 'column "city": 20 texts are not UTF-8, first "k\\xf6ln" (%s:3:4)'
        no_value = 'slot "city": 20 % of the rows have no value of it, and 0 % in the evaluation before'
        out = os.path.join(self.folder, "city_out")

        def stderr_of(program, *arguments):
            done = subprocess.run([os.path.join(support.BIN, program), *arguments], capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr.decode()

        def train_city(job):
            shutil.rmtree(out, ignore_errors=True)
            return stderr_of("trainer", "--trainer_desc=" + support.write(out + ".prototxt", job), "--output_dir=" + out)
        for step in ("hash {}", "hash { buckets: 1000 }", "vocabulary { min_count: 1 }", "vocabulary { min_count: 1 } hash {}"):
            job = CITY % {"step": step, "train": train, "eval": 'eval { filelist: "%s" }' % known}
            self.assertNotIn("warning", train_city(job))
            model = out + "/model"
            predictor = millrace.Predictor(model)

            def told(path):
                message = stderr_of("predictor", "--model_dir=" + model, "--input=" + path)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    with open(path, "rb") as file:
                        millrace.Predictor(model).predict_lines(file)
                python = "".join(str(warning.message) for warning in caught)
                self.assertEqual("warning" in message, bool(python), (message, python))
                return message + python.replace("predict_lines: ", "")
            self.assertNotIn("warning", told(known))
            unknown = "are not in its vocabulary" if step.startswith("vocabulary") else "were never trained"
            self.assertEqual(told(upper).count(evaluated % unknown), 2)
            self.assertEqual(told(latin).count(not_utf8 % latin), 1)
            self.assertEqual(told(missing).count(no_value), 2)
            # A server that is asked row by row.
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for _ in range(40):
                    predictor.predict_lines("city\nWIEN\n")
            self.assertEqual([str(warning.message)[:65] for warning in caught],
                             [('predict_lines: slot "city": 100 %% of its values %s' % unknown)[:65]])
            # Rows that were scored long before do not outweigh those of now.
            busy = millrace.Predictor(model)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for words_of_call in [words * 4000] + [[word.upper() for word in words] * 400] * 2:
                    busy.predict_lines("city\n" + "\n".join(words_of_call) + "\n")
            self.assertEqual(len(caught), 1, caught)
        # Models without an evaluation, as those that were saved before, tell of half of the values.
        train_city(CITY % {"step": "hash {}", "train": train, "eval": ""})
        self.assertIn("80 % of its values were never trained: are", told(upper))
        self.assertIn("not UTF-8", told(latin))
        self.assertNotIn("warning", told(missing))
        # An evaluation of one set is compared with its last one.
        text = CITY % {"step": "hash {}", "train": train, "eval": 'eval { filelist: "%s" }' % upper}
        self.assertIn("evaluation: slot \"city\": 80 % of its values were never trained: are",
                      train_city(text))

    def test_a_bad_line_leaves_nothing_to_the_next_call(self):
        predictor = millrace.Predictor(self.model)
        good = support.line(self.rows[0])
        wanted = predictor.predict_lines(good)
        for _ in range(2):
            with self.assertRaises(millrace.DataError):
                predictor.predict_lines([good, "1 0 2 0.5 oops 1 1 1 1 1 1"])
            self.assertEqual(predictor.predict_lines(good), wanted)

    def test_lists_are_read_as_numpy_reads_them(self):
        predictor = millrace.Predictor(self.model)
        columns = {name: values[:3] for name, values in self.columns().items()}

        def scored(ids):
            return predictor.predict({**columns, "C1": ids}).tolist()
        most = 2 ** 64 - 1
        wanted = scored(millrace.create_lod_tensor(np.array([7, most, 9], np.uint64), [[1, 2, 0]]))
        for ids in ([[7], [most, 9], []], ([7], (most, 9), ()), [7, [most, 9], []], [np.array([7]), [most, 9], []],
                    [[np.int64(7)], [most, 9], []], [np.array([[7]]), np.array([most, 9], np.uint64), []],
                    [np.array([0, 7])[1:], np.array([most, 0, 9], np.uint64)[::2], np.array([], np.uint64)]):
            self.assertEqual(scored(ids), wanted, ids)
        wanted = scored(millrace.create_lod_tensor(np.array([7, 8, 9], np.uint64), [[1, 1, 1]]))
        for ids in (np.array([7, 8, 9]), np.array([[7], [8], [9]], np.uint64), np.array([7, 8, 9], np.int32),
                    np.array([7, 0, 8, 0, 9, 0])[::2], np.array([7, 8, 9], ">i8"), np.ma.masked_array([7, 8, 9])):
            self.assertEqual(scored(ids), wanted, ids)
        masked = np.ma.masked_array([7], mask=[True])
        for ids, said in (([[7], [-9], []], "-9 .* is below 0"), ([[7], [2 ** 64], []], "does not fit 64 bits"),
                          ([[7], [1.5], []], "give integers"), ([[7], [True], []], "give integers"),
                          ([masked, [1], []], "masked"), ([[7], [[1, 2], [3, 4]], []], "row 1 has the shape"),
                          ([[7], np.array([-9]), []], "-9 .* is below 0")):
            with self.assertRaisesRegex(millrace.ConfigError, said):
                scored(ids)

    def test_slots_say_what_a_model_reads(self):
        slots = {slot.name: slot for slot in millrace.Predictor(self.model).slots}
        self.assertEqual(slots["dense"], millrace.Slot("dense", "float", True, 2, True))
        self.assertEqual(slots["C3"], millrace.Slot("C3", "uint64", False, 0, True))
        self.assertFalse(slots["label"].is_needed)

    def test_a_folder_that_is_no_model_is_not_found(self):
        with self.assertRaisesRegex(millrace.NotFoundError, "is no saved model"):
            millrace.Predictor(os.path.join(self.folder, "nothing"))
        with self.assertRaisesRegex(millrace.ConfigError, 'no feed "onlin"'):
            millrace.Predictor(self.model, feed="onlin")

    def test_a_pipe_in_place_of_a_models_file_is_refused_not_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in "MODEL", "parameters":
                model = os.path.join(folder, name + ".model")
                shutil.copytree(self.model, model)
                os.unlink(os.path.join(model, name))
                os.mkfifo(os.path.join(model, name))
                with self.assertRaisesRegex(millrace.DataError, "is a named pipe"):
                    millrace.Predictor(model)
            os.symlink("loop", os.path.join(folder, "loop"))
            with self.assertRaisesRegex(millrace.Error, "Too many levels of symbolic links"):
                millrace.Predictor(os.path.join(folder, "loop"))


if __name__ == "__main__":
    unittest.main()
