"""Classifier and Regressor learn, and are what scikit-learn takes for an estimator."""

import os
import pickle
import resource
import signal
import subprocess
import tempfile
import threading
import unittest
import warnings

import support

support.with_packages("FRAMES_PYTHON", ["pandas", "polars", "pyarrow", "sklearn"])

import numpy as np  # noqa: E402

import millrace  # noqa: E402

# What learning by batches cannot promise: that a weight of 2 is a row that stands there twice, to the seventh digit.
NOT_PROMISED = {"check_sample_weight_equivalence_on_dense_data"}


def people(count=600, seed=1):
    """Columns, and whether a row is of the class, which hangs on all of them."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, size=count)
    city = rng.choice(["Wien", "Graz", "Linz"], size=count)
    score = (age > 40) + 1.5 * (city == "Graz") + rng.normal(0, 0.3, size=count)
    columns = {"age": [None if i % 17 == 0 else int(v) for i, v in enumerate(age)], "city": city.tolist(),
               "noise": rng.normal(size=count).tolist()}
    return columns, score > 1.2, score


def tables_of(columns):
    yield "dict", columns
    for name in ("pandas", "polars", "pyarrow"):
        try:
            library = __import__(name)
        except ImportError:
            continue
        yield name, library.table(columns) if name == "pyarrow" else library.DataFrame(columns)


class EstimatorsTest(unittest.TestCase):
    def test_frames_of_every_kind_teach_the_same(self):
        columns, y, number = people()
        other, other_y, other_number = people(seed=2)
        expected = None
        for (name, table), (_, other_table) in zip(tables_of(columns), tables_of(other)):
            with self.subTest(name):
                model = millrace.Classifier().fit(table, y)
                self.assertEqual(model.classes_.tolist(), [False, True])
                proba = model.predict_proba(other_table)
                self.assertEqual(proba.shape, (600, 2))
                np.testing.assert_allclose(proba.sum(axis=1), 1)
                self.assertGreater(model.score(other_table, other_y), 0.85)
                expected = proba if expected is None else expected
                np.testing.assert_allclose(proba, expected, atol=0.02)  # a median of ints may be a float
                regressor = millrace.Regressor().fit(table, number)
                self.assertGreater(regressor.score(other_table, other_number), 0.8)

    def test_more_than_two_classes_have_a_column_each(self):
        columns, _, score = people()
        y = np.array(["low", "middle", "high"])[np.digitize(score, [0.6, 1.6])]
        model = millrace.Classifier().fit(columns, y, eval_set=(columns, y))
        self.assertEqual(model.classes_.tolist(), ["high", "low", "middle"])
        proba = model.predict_proba(columns)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        self.assertGreater(model.score(columns, y), 0.8)
        if not model.report_.stopped_early:
            self.assertAlmostEqual(model.report_.evaluation["accuracy"], model.score(columns, y), places=6)
        self.assertEqual(model.best_score_, min(one["loss"] for one in model.report_.evaluations))
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(millrace.ConfigError, "^no folder is named$"):
                model.save("")
            model.save(folder + "/model")
            saved = millrace.Predictor(folder + "/model")
            self.assertEqual(len(saved.predictions), 3)
            np.testing.assert_allclose(saved.predict(columns), proba, atol=1e-6)
        with self.assertRaisesRegex(ValueError, "its model gives 1 scores a row .*, and y has 3 classes"):
            two = millrace.Classifier(epochs=1).fit(columns, y == "low").job_
            millrace.Classifier(job=two.replace("SIGMOID_CROSS_ENTROPY", "SQUARED_ERROR")).fit(columns, y)
        own = millrace.Classifier(job=model.job_).fit(columns, y, eval_set=(columns, y))
        np.testing.assert_array_equal(own.predict_proba(columns), proba)

    def test_weights_of_the_evaluation_count_in_it(self):
        columns, y, number = people()
        others, other_y, other_number = people(seed=2)
        half = (np.arange(600) < 300).astype(float)
        first = {name: values[:300] for name, values in others.items()}
        for kind, labels, other in ((millrace.Classifier, y, other_y), (millrace.Regressor, number, other_number)):
            weighted = kind(epochs=3).fit(columns, labels, eval_set=[(others, other)], eval_sample_weight=[half])
            alone = kind(epochs=3).fit(columns, labels, eval_set=(first, other[:300]))
            for name in weighted.report_.metrics:
                self.assertAlmostEqual(weighted.report_.evaluation[name], alone.report_.evaluation[name], places=5)
            self.assertEqual(weighted.best_iteration_, alone.best_iteration_)
            self.assertIn(weighted.best_iteration_, (1, 2, 3))
            self.assertIsNone(kind(epochs=1).fit(columns, labels).best_iteration_)
            with self.assertRaisesRegex(ValueError, "eval_sample_weight: fit has no eval_set"):
                kind().fit(columns, labels, eval_sample_weight=half)

    def test_a_set_of_evaluation_ends_the_training_early(self):
        columns, y, _ = people()
        model = millrace.Classifier(epochs=200, patience=2).fit(columns, y, eval_set=[people(seed=2)[:2]])
        self.assertTrue(model.report_.stopped_early)
        self.assertLess(model.report_.epochs, 200)
        self.assertEqual(model.report_.evaluation["examples"], 600)
        with self.assertRaisesRegex(ValueError, "eval_set has classes that y has not"):
            millrace.Classifier().fit(columns, y, eval_set=(columns, np.full(600, 7)))

    def test_early_stopping_holds_rows_out(self):
        columns, y, number = people()
        weights = np.linspace(0.5, 1, 600)
        for name, table in [*tables_of(columns), ("array", np.array([columns["noise"], number]).T)]:
            with self.subTest(name):
                model = millrace.Classifier(epochs=200, patience=2, early_stopping=True, validation_fraction=0.2).fit(
                    table, y, sample_weight=weights)
                self.assertTrue(model.report_.stopped_early)
                self.assertEqual(model.report_.evaluation["examples"], round(0.2 * y.sum()) + round(0.2 * (~y).sum()))
                self.assertGreater(model.score(table, y), 0.8)
        regressor = millrace.Regressor(epochs=200, early_stopping=True).fit(columns, number)
        self.assertEqual(regressor.report_.evaluation["examples"], 60)
        given = millrace.Classifier(epochs=200, early_stopping=True).fit(columns, y, eval_set=people(seed=2)[:2])
        self.assertEqual(given.report_.evaluation["examples"], 600)
        self.assertIsNone(millrace.Classifier(epochs=1).fit(columns, y).report_.evaluation)
        # Of a class with one row none is held out, and without it there is no AUC to look at.
        lone = millrace.Classifier(epochs=30, early_stopping=True).fit(columns, np.arange(600) == 17)
        self.assertEqual(np.isnan(lone.report_.evaluation["auc"]), True)
        self.assertGreater(lone.report_.epochs, 3)
        for wrong, message in [(dict(validation_fraction=1), "between 0 and 1"), (dict(patience=0), "patience is 0"),
                               (dict(early_stopping="no"), "True or False, not 'no'"),
                               (dict(job="x"), "a job of your own says so")]:
            with self.assertRaisesRegex(ValueError, message):
                millrace.Classifier(**{"early_stopping": True, **wrong}).fit(columns, y)
        with self.assertRaisesRegex(ValueError, "of 2 rows leaves none to hold out"):
            millrace.Classifier(early_stopping=True).fit([[1], [2]], [0, 1])

    def test_a_column_of_texts_that_all_differ_is_warned_of(self):
        columns, y, _ = people()
        columns = dict(columns, user=["user %d" % row for row in range(600)])
        for name, table in tables_of(columns):
            with self.subTest(name), self.assertWarnsRegex(UserWarning, "a column 'user' of text whose values are all different") as told:
                millrace.Classifier(epochs=1).fit(table, y)
            self.assertEqual(told.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            millrace.Classifier(epochs=1).fit(dict(columns, user=["a"] + columns["user"][:-2] + ["a"]), y)
            millrace.Classifier(epochs=1).fit({"few": ["a", "b", "c", "d"]}, [0, 1, 0, 1])

    def test_a_score_is_of_one_label_a_row(self):
        columns = {"u": [str(i % 3) for i in range(300)]}
        y = np.array([i % 3 == 0 for i in range(300)])
        for model, labels in ((millrace.Classifier(epochs=3), y.astype(int)), (millrace.Regressor(epochs=3), y.astype(float))):
            model.fit(columns, labels)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertEqual(model.score(columns, labels[:, None]), model.score(columns, labels))
            for short in (labels[:1], labels[:-1]):
                with self.assertRaisesRegex(ValueError, r"inconsistent numbers of samples: \[300, \d+\]"):
                    model.score(columns, short)

    def test_a_saved_model_scores_files_without_the_label_and_with_other_words_for_missing(self):
        program = os.path.join(os.environ.get("MILLRACE_BIN", ""), "predictor")
        if not os.path.exists(program):
            self.skipTest("no programs: scripts/build")
        columns, y, _ = people()
        columns = dict(columns, city=["NA" if row % 9 == 0 else city for row, city in enumerate(columns["city"])])
        model = millrace.Classifier(epochs=2).fit(columns, y)
        self.assertNotIn('"NA"', model.job_, "it is a word of a column")
        other = millrace.Classifier(epochs=2).fit(people()[0], y)
        rows = people()[0]
        expected = other.predict_proba({"age": [None, 30], "city": ["Graz", None], "noise": [0.5, None]})[:, 1]
        self.assertEqual(list(rows), ["age", "city", "noise"])
        with tempfile.TemporaryDirectory() as folder:
            other.save(os.path.join(folder, "model"))
            for word in ("NA", "NULL", "\\N", "?", "nan", ""):
                support.write(os.path.join(folder, "new.csv"), "age,city,noise\n%s,Graz,0.5\n30,%s,%s\n" % (word, word, word))
                done = subprocess.run([program, "--model_dir=" + os.path.join(folder, "model"),
                                       "--input=" + os.path.join(folder, "new.csv")], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn('note: the input has no column "label"', done.stderr)
                self.assertIn("without it there are no metrics", done.stderr)
                np.testing.assert_allclose([float(line) for line in done.stdout.split()], expected, rtol=1e-6)

    def test_a_saved_regressor_gives_what_the_estimator_gives(self):
        columns, _, number = people()
        hours = 40 + 3 * number
        model = millrace.Regressor(epochs=5).fit(columns, hours, eval_set=(columns, hours))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            model.save(path)
            model.save(path)  # in place of the one before
            np.testing.assert_allclose(millrace.Predictor(path).predict(columns), model.predict(columns), rtol=1e-6)
            with self.assertRaisesRegex(millrace.ConfigError, r'".*" contains files that are not part of a saved model \("model/MODEL"'):
                model.save(folder)
        error = np.sqrt(np.mean((model.predict(columns) - hours)**2))
        self.assertAlmostEqual(model.report_.evaluation["rmse"], error, 4)  # in units of y
        self.assertLess(error, 3)

    def test_numbers_that_a_frame_holds_as_words_are_warned_of(self):
        pandas = support.package(self, "pandas")
        columns, y, _ = people()
        frame = pandas.DataFrame(columns)
        frame["noise"] = frame["noise"].astype(str)
        frame.loc[7, "noise"] = "forty"
        with self.assertWarnsRegex(UserWarning, "a column 'noise' of text, of whose 600 different values all but 'forty' are numbers"):
            millrace.Classifier(epochs=1).fit(frame, y)
        # Categories of floats, as of a column where some are missing, and of whole numbers.
        frame = pandas.DataFrame({"kind": pandas.Categorical([i % 3 * 1.0 for i in range(60)])})
        model = millrace.Classifier(epochs=1).fit(frame, [i % 3 == 0 for i in range(60)])
        frame["kind"] = pandas.Categorical([i % 3 for i in range(60)])
        with self.assertWarnsRegex(millrace.MillraceWarning, 'column "kind" holds whole numbers: its words are "0", and "0.0" in training'):
            model.predict(frame)

    def test_weights_count(self):
        columns, y, _ = people()
        flipped = np.concatenate([y, ~y])
        twice = {name: values * 2 for name, values in columns.items()}
        for counts in (0, 1):
            weights = np.repeat([1.0 - counts, float(counts)], 600)
            model = millrace.Classifier().fit(twice, flipped, sample_weight=weights)
            self.assertGreater(model.score(columns, y if counts == 0 else ~y), 0.8)

    def test_a_model_is_a_value(self):
        columns, y, _ = people()
        model = millrace.Classifier(seed=3).fit(columns, y)
        expected = model.predict_proba(columns)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(columns), expected)
        np.testing.assert_array_equal(millrace.Classifier(seed=3).fit(columns, y).predict_proba(columns), expected)
        with tempfile.TemporaryDirectory() as folder:
            model.save(os.path.join(folder, "model"))
            lines = [",".join(columns)] + [",".join("" if v is None else str(v) for v in row) for row in zip(*columns.values())]
            scores = millrace.Predictor(os.path.join(folder, "model")).predict_lines(lines, without=["label"])
        np.testing.assert_array_equal(scores.astype(np.float64), expected[:, 1])

    def test_files_of_the_user_keep_a_folder_from_being_replaced(self):
        columns, y, _ = people()
        model = millrace.Classifier(epochs=1).fit(columns, y)
        with tempfile.TemporaryDirectory() as folder:
            support.write(os.path.join(folder, "MODEL"), "a plan of the house")
            support.write(os.path.join(folder, "thesis.tex"), "years")
            with self.assertRaisesRegex(millrace.ConfigError, r'contains files that are not part of a saved model \("MODEL", "thesis.tex"\)'):
                model.save(folder)
            self.assertEqual(sorted(os.listdir(folder)), ["MODEL", "thesis.tex"])
            path = os.path.join(folder, "model")
            model.save(path)
            support.write(os.path.join(path, "notes.txt"), "mine")
            with self.assertRaisesRegex(millrace.ConfigError, r'contains files that are not part of a saved model \("notes.txt"\)'):
                model.save(path)
            os.remove(os.path.join(path, "notes.txt"))
            model.save(path)

    def test_a_full_disk_leaves_the_model_that_was_there(self):
        columns, y, _ = people()
        old, new = (millrace.Classifier(epochs=1, seed=seed).fit(columns, y) for seed in (1, 2))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            old.save(path)
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # of a file; fewer bytes than the parameters have
            try:
                with self.assertRaisesRegex(millrace.Error, "File too large"):
                    new.save(path)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertEqual(os.listdir(folder), ["model"])
            np.testing.assert_array_equal(millrace.Predictor(path).predict(columns), old.predict_proba(columns)[:, 1].astype(np.float32))
            new.save(path)
            np.testing.assert_array_equal(millrace.Predictor(path).predict(columns), new.predict_proba(columns)[:, 1].astype(np.float32))

    def test_a_pickle_writes_nothing_outside_its_folder(self):
        columns, y, _ = people()
        model = millrace.Classifier(epochs=1).fit(columns, y)
        files = model.model_
        for name in ("../escaped", "/tmp/escaped", "tables/../../escaped", ""):
            model.model_ = {**files, name: b"owned"}
            with self.assertRaisesRegex(millrace.Error, 'a model names a file ".*", which lies outside its folder; it is not written'):
                pickle.loads(pickle.dumps(model))
            with tempfile.TemporaryDirectory() as folder:
                with self.assertRaisesRegex(millrace.Error, "lies outside its folder"):
                    model.save(os.path.join(folder, "model"))
                self.assertEqual(os.listdir(folder), [])
        model.model_ = {**files, "MODEL": "a text"}
        with self.assertRaisesRegex(millrace.Error, "bytes by the names of its files"):
            pickle.loads(pickle.dumps(model))

    def test_control_characters_of_columns_reach_no_terminal(self):
        name = "a\x1b]0;owned\x07\x9b31m"
        job = millrace.Job.from_text('data_desc { name: "csv" batch_size: 8 feature { name: "label" } feature { name: "x" from: "%s" } } '
                                     'model { layer { name: "y" fc { in: "x" units: 1 } } loss { kind: SQUARED_ERROR in: "y" '
                                     'label: "label" } optimizer { sgd { lr: 0.1 } } }' % "".join("\\%03o" % byte for byte in name.encode()))
        with self.assertRaises(millrace.Error) as raised:
            job.fit({"label": [1.0, 2.0], "x": [1.0, 2.0]}, verbose=False)
        self.assertIn("a\\x1b]0;owned\\x07", str(raised.exception))
        self.assertNotIn("\x1b", str(raised.exception))
        for made in (millrace.Error(name), millrace.ConfigError(name), millrace.IoError(name), millrace.MillraceWarning(name)):
            self.assertEqual(str(made), "a\\x1b]0;owned\\x07\\xc2\\x9b31m", type(made))
            self.assertEqual(str(pickle.loads(pickle.dumps(made))), str(made))

    def test_label_and_weight_have_the_names_of_their_columns(self):
        class Named(np.ndarray):
            name = "bought"

        columns, y, _ = people()
        model = millrace.Classifier(epochs=1).fit(columns, y.view(Named), sample_weight=np.ones(600))
        self.assertIn('name: "label" from: "bought"', model.job_)
        self.assertIn('name: "weight" from: "weight"', model.job_)
        clash = dict(columns, bought=columns["noise"], label=columns["noise"])
        self.assertIn('from: "bought_"', millrace.Classifier(epochs=1).fit(clash, y.view(Named)).job_)
        self.assertIn('from: "label_"', millrace.Classifier(epochs=1).fit(clash, y).job_)

    def test_column_names_with_two_dots_are_no_ranges(self):
        flag = np.repeat([0.0, 1.0], 300)
        X = {"C1": np.tile([0.0, 1.0], 300), "C2": np.arange(600) % 7.0, "C1..C2": flag, "price..USD.": flag[::-1].copy()}

        class Named(np.ndarray):
            name = "a..b"

        model = millrace.Classifier(epochs=5).fit(X, flag.astype(int).view(Named))
        self.assertEqual(model.score(X, flag), 1)
        self.assertGreater(model.score({**X, "C1": X["C2"]}, flag), 0.99)

    def test_columns_without_a_number_are_left_out_and_infinity_is_refused(self):
        columns, y, _ = people()
        expected = millrace.Classifier(epochs=1).fit(columns, y).predict_proba(columns)
        with self.assertWarnsRegex(UserWarning, "X has a column 'q' without a number: it is left out"):
            model = millrace.Classifier(epochs=1).fit(dict(columns, q=np.full(600, np.nan)), y)
        np.testing.assert_array_equal(model.predict_proba(dict(columns, q=np.ones(600))), expected)
        with self.assertRaisesRegex(ValueError, "contains infinity .* column 'q'"):
            millrace.Classifier().fit(dict(columns, q=np.full(600, np.inf)), y)
        with self.assertWarnsRegex(UserWarning, "without a number"), self.assertRaisesRegex(ValueError, "no column with a value"):
            millrace.Classifier().fit({"q": np.full(600, np.nan)}, y)

    def test_what_comes_in_parts_or_lazily_is_a_table(self):
        pyarrow, polars = support.package(self, "pyarrow"), support.package(self, "polars")
        columns, y, _ = people()
        table = pyarrow.table(columns)
        expected = millrace.Classifier(epochs=1).fit(table, y).predict_proba(table)
        for X in (table.to_batches()[0], pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches()),
                  polars.from_arrow(table).lazy()):
            with self.subTest(type(X).__name__):
                np.testing.assert_allclose(millrace.Classifier(epochs=1).fit(X, y).predict_proba(table), expected, atol=1e-6)
        batch = table.to_batches()[0]
        np.testing.assert_array_equal(millrace.Classifier(epochs=1).fit(table, y, eval_set=(batch, y)).predict_proba(batch), expected)

    def test_mistakes_are_told_by_the_names_of_arguments(self):
        columns, y, number = people()
        few = {name: values[:10] for name, values in columns.items()}
        none = {name: values[:0] for name, values in columns.items()}
        for more, message in [(dict(eval_set=(none, y[:0])), "eval_set: X has 0 rows and y 0: nothing to evaluate"),
                              (dict(eval_set=(few, y[:9])), "eval_set: X has 10 rows and y 9"),
                              (dict(eval_set=(columns, y), eval_sample_weight=np.zeros(600)), "eval_sample_weight: all weights are zero")]:
            with self.assertRaisesRegex(ValueError, message):
                millrace.Classifier().fit(columns, y, **more)
        job = millrace.Classifier(epochs=1).fit(columns, y).job_
        with self.assertRaisesRegex(ValueError, "sample_weight: the job reads no column 'weight'"):
            millrace.Classifier(job=job).fit(columns, y, sample_weight=np.ones(600))
        classes = millrace.Classifier(epochs=1).fit(columns, np.arange(600) % 3).job_
        regressor = millrace.Regressor(job=classes)
        with self.assertRaisesRegex(ValueError, "its model gives 3 scores a row .*, and y has numbers"):
            regressor.fit(columns, np.arange(600) % 3)
        self.assertFalse(hasattr(regressor, "model_"))
        for value in (0.1, 0.3, 1.7, 0.0):
            np.testing.assert_allclose(millrace.Regressor(epochs=1).fit(columns, np.full(600, value)).predict(few), value, atol=0.1)
        weighed = dict(columns, weight=np.asarray(columns["noise"]))
        own = millrace.Classifier(epochs=1).fit(weighed, y).job_
        with self.assertRaisesRegex(ValueError, "X has a column 'weight', which is what the label, or the weight"):
            millrace.Classifier(job=own).fit(weighed, y, eval_set=(weighed, y), eval_sample_weight=np.ones(600))
        one_class = millrace.Classifier(epochs=2).fit(columns, y, eval_set=(columns, y), eval_sample_weight=(y == 0).astype(float))
        self.assertEqual(one_class.best_score_, min(one["loss"] for one in one_class.report_.evaluations))
        with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as file:
            with self.assertRaisesRegex(ValueError, "job: the text of a TrainerDesc, not the path"):
                millrace.Classifier(job=file.name).fit(columns, y)
        with self.assertRaisesRegex(ValueError, "texts and other values, as 1, are no classes together"):
            millrace.Classifier().fit(columns, np.array(["a", 1] * 300, dtype=object))
        with self.assertRaisesRegex(ValueError, "y: its deviation is .* beyond floats of 32 bits"):
            millrace.Regressor().fit(columns, np.asarray(number) * 1e-30)
        with self.assertWarnsRegex(UserWarning, "y has a mean of 1e.09"):
            millrace.Regressor(epochs=1).fit(columns, np.asarray(number) + 1e9)

    def test_ctrl_c_leaves_the_model(self):
        columns, y, _ = people()
        model = millrace.Classifier(epochs=100000)
        timer = threading.Timer(2.0, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            model.fit(columns, y)
        timer.join()
        self.assertGreater(model.score(columns, y), 0.8)

    def test_a_job_of_ones_own(self):
        columns, y, _ = people()
        job = """
            thread_num: 1 update_mode: SERIAL epochs: 5
            data_desc { name: "csv" batch_size: 16
              feature { name: "age" default: "50" standardize {} } feature { name: "city" hash {} } feature { name: "bought" } }
            model {
              table { name: "t" dim: 4 init { uniform: 0.1 } optimizer { adagrad { lr: 0.1 } } }
              layer { name: "e" embedding { slots: "city" table: "t" } }
              layer { name: "y" fc { in: ["e", "age"] units: 1 } }
              loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "bought" }
              metric { kind: AUC }
              optimizer { adagrad { lr: 0.1 } }
            }"""
        model = millrace.Classifier(job=job, label="bought").fit(columns, y)
        self.assertGreater(model.score(columns, y), 0.85)
        with self.assertRaisesRegex(millrace.DataError, "row 2 is 2, and the loss takes 0, 1 and shares"):
            millrace.Classifier(job=job, label="bought").fit(columns, np.arange(600) % 3)

    def test_parameters(self):
        model = millrace.Classifier(lr=0.1, layers=[8])
        self.assertEqual(repr(model), "Classifier(layers=[8], lr=0.1)")
        self.assertEqual(model.set_params(epochs=3).get_params()["epochs"], 3)
        with self.assertRaisesRegex(ValueError, "Invalid parameter 'rate' for estimator Classifier"):
            model.set_params(rate=1)
        with self.assertRaises(ValueError):
            model.predict({"age": [1]})
        for wrong, message in [(dict(epochs=0), "epochs: at least 1"), (dict(layers=[0]), "layers: at least 1"),
                               (dict(lr="x"), "lr: a number"), (dict(threads=1.5), "threads: a whole number")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                millrace.Classifier(**wrong).fit(*people()[:2])
        for X, y, message in [([[1], [2]], [0, 0], "has one class"), ([[1], [2]], [0, 1, 1], "inconsistent numbers of samples"),
                              ([1, 2], [0, 1], "Reshape your data"), ([[1], [2]], [0.5, 1], "Unknown label type")]:
            with self.assertRaisesRegex(ValueError, message):
                millrace.Classifier().fit(X, y)

    def test_scikit_learn_takes_them_for_estimators(self):
        support.package(self, "sklearn")
        from sklearn.base import clone
        from sklearn.model_selection import GridSearchCV, cross_val_score
        columns, y, number = people()
        X = np.column_stack([np.array(columns["age"], dtype=float), np.array(columns["noise"])])
        self.assertGreater(cross_val_score(millrace.Classifier(), X, y | (X[:, 0] > 50), cv=3, scoring="roc_auc").mean(), 0.8)
        search = GridSearchCV(millrace.Regressor(), {"epochs": [1, 8], "layers": [(8,), (16, 8)]}, cv=2).fit(X, number)
        self.assertEqual(search.best_params_["epochs"], 8)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(search.best_estimator_)).predict(X), search.predict(X))
        self.assertEqual(clone(millrace.Classifier(lr=0.3)).lr, 0.3)

    def test_the_checks_of_scikit_learn_pass(self):
        support.package(self, "sklearn")
        from sklearn.utils import estimator_checks
        for estimator in (millrace.Classifier(layers=(8,), epochs=4), millrace.Regressor(layers=(8,), epochs=4)):
            failed, passed = [], 0
            for instance, check in estimator_checks.check_estimator(estimator, generate_only=True) if not hasattr(
                    estimator_checks, "estimator_checks_generator") else estimator_checks.estimator_checks_generator(estimator):
                name = getattr(check, "func", check).__name__
                if name in NOT_PROMISED:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        check(instance)
                        passed += 1
                    except unittest.SkipTest:
                        pass
                    except Exception as error:  # pylint: disable=broad-except
                        failed.append("%s: %s: %s" % (name, type(error).__name__, error))
            self.assertEqual(failed, [])
            self.assertGreater(passed, 40)


if __name__ == "__main__":
    unittest.main()
