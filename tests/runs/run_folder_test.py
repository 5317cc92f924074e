"""What is read of a run's folder."""

import math
import os
import unittest

from console import Failure
from run_folder import read_run, score_of
from written_runs import WithRuns


class RunFolderTest(WithRuns):
    def failure(self, folder):
        with self.assertRaises(Failure) as caught:
            read_run(folder)
        return caught.exception

    def test_has_the_summary_the_job_and_the_curves(self):
        run = read_run(self.write_run("a", "epochs: 3 seed: 7", 0.6, 0.8) + "//")
        self.assertEqual(run.name, self.folder("a"))
        self.assertTrue(run.has_ended)
        self.assertEqual((run.steps, run.model_step, run.seconds, run.job), (20, 20, 2.0, "epochs: 3 seed: 7"))
        self.assertEqual(run.better, {"auc": "higher", "loss": "lower"})
        self.assertEqual(list(run.evaluations), ["loss", "auc"])
        self.assertEqual(run.evaluations["auc"], [(10, 0.6), (20, 0.8)])
        self.assertEqual(list(run.training), ["loss", "auc"])  # what has several values has no curve
        self.assertTrue(math.isnan(run.training["auc"][0][1]))  # null is no value
        self.assertEqual(run.notes, [])

    def test_rejects_what_is_no_run(self):
        self.assertIn("no folder", self.failure(self.folder("absent")).message)
        folder = self.write("a", "scores.txt", "1\n")
        self.assertRegex(self.failure(folder).message, "is no run: it has neither run.json nor metrics.jsonl$")
        self.assertIn("is no folder", self.failure(folder + "/scores.txt").message)

    def test_does_not_wait_for_a_named_pipe(self):
        for name in ("run.json", "metrics.jsonl"):
            os.makedirs(self.folder(name))
            os.mkfifo(os.path.join(self.folder(name), name))
            failure = self.failure(self.folder(name))
            self.assertEqual(failure.kind, "bad data")
            self.assertIn(name + '" is a named pipe, and a plain file belongs there', failure.message)

    def test_a_cut_last_line_is_skipped(self):
        run = read_run(self.write("a", "metrics.jsonl", '{"step":5,"examples":9,"loss":0.5}\n{"step":6,"ex'))
        self.assertFalse(run.has_ended)
        self.assertEqual(run.steps, 5)
        self.assertEqual(run.training["loss"], [(5, 0.5)])
        self.assertRegex(run.notes[0], "/metrics.jsonl:2: the last line is cut")
        self.assertIn("no run.json", run.notes[1])

    def test_reports_the_place_of_a_line_that_no_run_wrote(self):
        for text, line, what in (('{"step":5}\n{"step":\n{"step":7}\n', 2, "expected an object"), ("[1]\n", 1, "expected an object"),
                                 ('{"loss":1}\n', 1, 'a line of a run\'s metrics has a "step"'), ("\n", 1, "expected"),
                                 ('{"step":1.0}\n', 1, "a line"), ('{"step":true}\n', 1, "a line"), ('{"step":-1}\n', 1, "a line"),
                                 ('{"step":1,"x":NaN}\n', 1, "expected"), ("[" * 100000 + "\n", 1, "expected"),
                                 (b'{"step":1,"x\xff":1}\n', 1, "expected"), (b"\xff\xfe{}\n", 1, "expected")):
            failure = self.failure(self.write("a", "metrics.jsonl", text))
            self.assertEqual(failure.kind, "bad data")
            self.assertIn(f"/metrics.jsonl:{line}: {what}", failure.message)
        self.assertIn("/run.json: expected an", self.failure(self.write("b", "run.json", '{"exam')).message)
        self.assertIn("/run.json: a run's summary", self.failure(self.write("b", "run.json", "{}")).message)

    def test_values_of_other_types_are_no_values(self):
        run = read_run(self.write("a", "metrics.jsonl", '{"step":5,"a":true,"b":"1","c":{},"d":1' + "0" * 400 + "}\n"))
        self.assertEqual(list(run.training), ["a", "b", "c", "d"])
        self.assertTrue(all(math.isnan(curve[0][1]) for curve in run.training.values()))
        run = read_run(self.write("b", "run.json", '{"examples": 8, "batches": 2, "eval": 3, "better": [1], "metrics": "x", "job": 1}'))
        self.assertEqual((run.evaluations, run.better, run.metrics, run.job), ({}, {}, {}, None))

    def test_a_run_of_an_earlier_build_has_no_job(self):
        run = read_run(self.write("a", "run.json", '{"examples": 8, "batches": 2, "interrupted": true, "eval": {"step": 2, "auc": 0.5}}'))
        self.assertIsNone(run.job)
        self.assertTrue(run.interrupted)
        self.assertTrue(math.isnan(run.seconds))
        self.assertIn('it has no "job"', run.notes[0])
        self.assertIn("no metrics.jsonl", run.notes[1])

    def test_without_lines_the_evaluation_is_that_of_the_summary(self):
        run = read_run(self.write("a", "run.json", '{"examples": 8, "batches": 2, "eval": {"step": 2, "epoch": 1, "loss": 0.6, "auc": 0.5}, '
                                                   '"better": {"higher": ["auc"], "lower": ["loss"]}, "job": "epochs: 1"}'))
        self.assertEqual(run.evaluations, {"loss": [(2, 0.6)], "auc": [(2, 0.5)]})

    def test_scores(self):
        self.assertGreater(score_of("higher", 0.7), score_of("higher", 0.6))
        self.assertGreater(score_of("lower", 0.6), score_of("lower", 0.7))
        self.assertGreater(score_of("nearer_to_1", 1.1), score_of("nearer_to_1", 0.8))
        self.assertEqual(score_of("lower", math.nan), -math.inf)


if __name__ == "__main__":
    unittest.main()
