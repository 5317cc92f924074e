"""Predictor: the scores of the program `predictor`, from lines and from arrays."""

import os
import tempfile
import threading
import unittest

import support

import numpy as np

import millrace


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
            columns[slot] = (np.concatenate([np.array(ids) for ids in columns[slot]]), [len(ids) for ids in columns[slot]])
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
        for ids in ([2 ** 63 + 1, 1, 2 ** 64 - 1], [2 ** 63 + 1, 1, -1], [np.uint64(2 ** 63 + 1), 1, -1]):
            self.assertTrue((predictor.predict(dict(columns, C1=[ids])) == predictor.predict(arrays)).all(), ids)

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
                ({"C3": ([1, 2, 3], [1, 1, 1, 1])}, 'slot "C3": lengths must .* sum to the 3 values; they sum to 4'),
                ({"C4": [[1]] * 4}, 'the model has no slot "C4"')]:
            given = dict(columns, **wrong)
            if wrong == {"C1": None}:
                del given["C1"]
            with self.assertRaisesRegex(millrace.ConfigError, message):
                predictor.predict(given)

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


if __name__ == "__main__":
    unittest.main()
