"""Calibrations of a job are those of scikit-learn, and are in whatever scores its model."""

import os
import tempfile
import unittest

import support

support.with_packages("FRAMES_PYTHON", ["sklearn"])

import numpy as np  # noqa: E402

import millrace  # noqa: E402

JOB = """
thread_num: 2
update_mode: SERIAL
epochs: 3
data_desc {
  name: "csv"
  batch_size: 32
  feature { name: "label" from: "click" id {} is_dense: true }
  feature { name: "a" hash {} }
  feature { name: "b" hash {} }
  feature { name: "w" }
  feature { name: "known" id {} is_dense: true }
}
model {
  table { name: "t" dim: 4 init { uniform: 0.1 } optimizer { adagrad { lr: 0.3 } } }
  layer { name: "e" embedding { slots: ["a", "b"] table: "t" } }
  layer { name: "h" fc { in: "e" units: 16 act: RELU } }
  layer { name: "y" fc { in: "h" units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" %s }
  metric { kind: LOGLOSS }
  optimizer { adagrad { lr: 0.1 } }
}
eval { %s }
"""
WEIGHTS = 'sample_weight: "w" mask: "known"'


def clicks(count, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(30, size=count), rng.integers(10, size=count)
    share = 1 / (1 + np.exp(1.5 - a / 15 + b / 8))
    return {
        "click": (rng.random(count) < share).astype("int64"), "a": a, "b": b,
        "w": rng.choice([0.25, 1.0, 2.5], size=count), "known": (rng.random(count) < 0.8).astype("int64"),
    }


class CalibrationTest(unittest.TestCase):
    def scores(self, job, folder, rows):
        job.save_model(os.path.join(folder, "model"))
        return millrace.Predictor(os.path.join(folder, "model")).predict(rows)

    def test_files_of_the_user_keep_a_folder_from_being_replaced(self):
        job = millrace.Job.from_text(JOB % ("", ""))
        job.fit(clicks(200, 1), clicks(200, 2), verbose=False)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("MODEL", "thesis.tex"):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write("mine")
            with self.assertRaisesRegex(millrace.ConfigError, r'contains files that are not part of a saved model \("MODEL", "thesis.tex"\)'):
                job.save_model(folder)
            path = os.path.join(folder, "model")
            job.save_model(path)
            job.save_model(path)
            with open(os.path.join(path, "notes.txt"), "w", encoding="utf-8") as file:
                file.write("mine")
            with self.assertRaisesRegex(millrace.ConfigError, r'contains files that are not part of a saved model \("notes.txt"\)'):
                job.save_model(path)
            self.assertTrue(os.path.exists(os.path.join(path, "notes.txt")))

    def both(self, loss, calibration):
        """Scores of the evaluation's rows by the same model without and with a calibration, and its report."""
        train, test = clicks(1500, 1), clicks(3000, 2)
        found = []
        for wanted in ("", calibration):
            job = millrace.Job.from_text(JOB % (loss, wanted))
            report = job.fit(train, test, verbose=False)
            with tempfile.TemporaryDirectory() as folder:
                found.append(self.scores(job, folder, test))
        return test, np.float64(found[0]), np.float64(found[1]), report.calibrations[0]

    def counted(self, test, weighted):
        keep = test["known"] == 1 if weighted else np.ones(len(test["click"]), bool)
        weights = test["w"][keep] if weighted else np.ones(keep.sum())
        return keep, weights / weights.mean()

    def test_a_line_through_the_logits_is_that_of_scikit_learn(self):
        calibration = support.package(self, "sklearn.calibration")
        for weighted in (False, True):
            test, raw, ours, report = self.both(WEIGHTS if weighted else "", "calibration { kind: PLATT }")
            keep, weights = self.counted(test, weighted)
            logits = np.log(raw / (1 - raw))
            theirs = calibration._SigmoidCalibration().fit(logits[keep], test["click"][keep], weights)
            np.testing.assert_allclose(ours, theirs.predict(logits), atol=2e-5)
            np.testing.assert_allclose([report["slope"], report["intercept"]], [-theirs.a_, -theirs.b_], atol=2e-4)

    def test_isotonic_regression_is_that_of_scikit_learn(self):
        isotonic = support.package(self, "sklearn.isotonic")
        metrics = support.package(self, "sklearn.metrics")
        for weighted in (False, True):
            test, raw, ours, report = self.both(WEIGHTS if weighted else "", "calibration { kind: ISOTONIC }")
            keep, weights = self.counted(test, weighted)
            theirs = isotonic.IsotonicRegression(out_of_bounds="clip").fit(raw[keep], test["click"][keep], sample_weight=weights)
            # Where all labels are alike, at the ends, ours are not sure of them.
            wanted = theirs.predict(raw)
            between = (wanted > wanted[wanted > 0].min()) & (wanted < wanted[wanted < 1].max())
            self.assertGreater(between.mean(), 0.9)
            np.testing.assert_allclose(ours[between], wanted[between], atol=2e-5)
            self.assertTrue(((ours > 0) & (ours < 1)).all())
            for name, scores in (("before", raw), ("after", ours)):
                loss = metrics.log_loss(test["click"][keep], np.clip(scores[keep], 1e-7, 1 - 1e-7), sample_weight=weights)
                self.assertAlmostEqual(report[name]["logloss"], loss, delta=1e-6)

    def test_what_a_callback_ends_is_saved_without_one_and_says_so(self):
        def stop(_):
            raise millrace.StopTraining

        job = millrace.Job.from_text(JOB % ("", "every_epochs: 0 calibration { }"))
        job.fit(clicks(500, 1), clicks(500, 2), verbose=False, callbacks=[stop])
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.scores(job, folder, clicks(10, 3)).shape, (10,))
            with open(os.path.join(folder, "model", "MODEL")) as model:
                self.assertNotIn("calibration", model.read())


if __name__ == "__main__":
    unittest.main()
