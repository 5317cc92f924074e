"""Jobs from Python: the numbers of `trainer`, errors as exceptions, Ctrl-C."""

import contextlib
import io
import json
import os
import signal
import tempfile
import threading
import unittest
import warnings

import support

import numpy as np

import millrace


class JobTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = self._folder.name
        support.write_log(self.folder)
        self.text = support.WIDE_DEEP % {"folder": self.folder}

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_a_table_that_grows_is_a_parameter_too(self):
        job = millrace.Job.from_text(support.WIDE_DEEP % {"folder": self.folder})
        job.run()
        keys, rows = job.parameter("deep")
        self.assertEqual((keys.dtype, rows.dtype, rows.shape), (np.uint64, np.float32, (len(keys), 4)))
        self.assertGreater(len(keys), 50)
        self.assertTrue((np.diff(keys.astype(object)) > 0).all() and np.abs(rows).max() > 0)
        self.assertEqual(job.parameter("wide").values.shape[1], 1)

    def test_the_report_has_the_numbers_of_a_run_of_trainer(self):
        file = support.write(self.path("job.prototxt"), self.text + 'eval { filelist: "%s/part-1" }' % self.folder)
        support.run("trainer", "--trainer_desc=" + file, "--output_dir=" + self.path("out"), "--set", "epochs=2")
        wanted = json.loads(support.read(self.path("out/run.json")))
        report = millrace.Job(file, overrides=["epochs=2"]).run()
        self.assertEqual(report.metrics, wanted["metrics"])
        self.assertEqual((report.examples, report.batches, report.epochs), (200, 14, 2))
        self.assertEqual(report.evaluation["auc"], wanted["eval"]["auc"])
        self.assertEqual(report.evaluation["examples"], 50)
        self.assertEqual(report.data["lines"], 100)
        self.assertEqual(report.workers, 1)
        self.assertGreater(report.seconds, 0)
        self.assertIn("200 examples in 14 batches", str(report))

    def test_its_words_go_through_pythons_output_and_logging(self):
        job = millrace.Job.from_text(self.text, overrides=["fetch_config.print_period=3"])
        shown, told = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(told):
            report = job.run()
        self.assertEqual([line.split("batch: ")[1][:3] for line in shown.getvalue().splitlines()], ["[3]", "[6]"])
        self.assertIn("trained: 100 examples in 7 batches", told.getvalue())
        self.assertEqual([entry["batch"] for entry in report.history], [3, 6])
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(told), self.assertLogs("millrace", "INFO") as logged:
            before = shown.getvalue(), told.getvalue()
            again = job.run()
        self.assertEqual(told.getvalue(), before[1])
        self.assertTrue(any("trained: 100 examples in 7 batches" in record.getMessage() for record in logged.records))
        self.assertEqual(len(shown.getvalue().splitlines()), 4)
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(told):
            quiet = job.run(verbose=False)
        self.assertEqual((len(shown.getvalue().splitlines()), told.getvalue()), (4, before[1]))
        for other in (again, quiet):
            self.assertEqual([entry["loss"].tolist() for entry in other.history], [entry["loss"].tolist() for entry in report.history])
        self.assertEqual(repr(job), 'Job("job")')

    def test_warnings_of_readers_and_workers_go_through_logging_not_around_it(self):
        support.write(self.path("part-nan"), "1 1 2 nan 0.5 1 3 1 4 1 5\n")
        settings = ["debug=true", "epochs=20", "allow_non_finite=true", "dump_fields=[\"h.w_0\"]",
                    "dump_fields_path=" + self.path("dump")]
        words = ["part-nan:1: a value of a float slot is NaN", "warning: dump_fields: \"h.w_0\" has no row", "op_mean_time:[",
                 "instances/s", "warning: variable \"loss\" holds a NaN"]
        for is_logged in (True, False):
            told = io.StringIO()
            with contextlib.ExitStack() as stack:
                stack.enter_context(contextlib.redirect_stderr(told))
                stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
                logged = stack.enter_context(self.assertLogs("millrace", "INFO")) if is_logged else None
                millrace.Job.from_text(self.text, overrides=settings).run(verbose=False)
            text = "\n".join(record.getMessage() for record in logged.records) if is_logged else told.getvalue()
            for word in words:
                self.assertIn(word, text)
            self.assertEqual(bool(told.getvalue()), not is_logged)

    def test_a_second_run_starts_anew_and_parameters_can_be_read(self):
        job = millrace.Job.from_text(self.text)
        with self.assertRaises(millrace.NotFoundError):
            job.parameter("h.w_0")
        first = job.run()
        weights = job.parameter("h.w_0")
        self.assertEqual((weights.shape, str(weights.dtype)), ((14, 8), "float32"))
        second = job.run()
        self.assertEqual(first.metrics, second.metrics)
        self.assertTrue((job.parameter("h.w_0") == weights).all())
        with self.assertRaisesRegex(millrace.NotFoundError, 'no parameter "h.w_9"'):
            job.parameter("h.w_9")

    def test_an_output_folder_holds_what_trainer_writes(self):
        millrace.Job.from_text(self.text, output_dir=self.path("out")).run()
        self.assertLessEqual({"run.json", "metrics.jsonl", "model", "checkpoints"}, set(os.listdir(self.path("out"))))
        self.assertEqual(millrace.Job.from_text(self.text, output_dir=self.path("out")).run(resume="auto").examples, 0)

    def test_words_about_models_of_passes_go_there_too(self):
        text = self.text.replace('filelist: "%s/part-*"' % self.folder, 'incremental { pass { name: "d0" filelist: "%s/part-0" } '
                                 'save_command: "echo uploaded $2" }' % self.folder)
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            millrace.Job.from_text(text, output_dir=self.path("out")).run()
        self.assertIn('model of pass "d0": ' + self.path("out/models/d0"), told.getvalue())
        self.assertIn("uploaded d0", told.getvalue())

    def test_an_inference_scores_with_the_best_or_the_last(self):
        def job(*overrides):
            watch = 'eval={ filelist: "%s" every_epochs: 1 early_stopping { metric: "loss" min_delta: 100 patience: 9 } }' % self.path("part-0")
            return millrace.Job.from_text(self.text, overrides=[watch, "epochs=3", *overrides], output_dir=self.path("out"))
        job().run()
        losses = {model: job("infer=true").run(resume="auto", model=model).metrics for model in ("best", "last")}
        self.assertNotEqual(losses["best"], losses["last"])
        with self.assertRaisesRegex(millrace.ConfigError, 'best or last, not "newest"'):
            job("infer=true").run(resume="auto", model="newest")

    def test_early_stopping_without_a_folder_says_that_the_last_model_is_left(self):
        support.write(self.path("held"), support.read(self.path("part-0")))
        watch = 'eval={ filelist: "%s" early_stopping { metric: "loss" patience: 2 } }' % self.path("held")
        with self.assertWarnsRegex(millrace.MillraceWarning, "the best model is kept in the output folder alone, and there is none"):
            millrace.Job.from_text(self.text, overrides=[watch])
        with self.assertNoLogs("millrace"), warnings.catch_warnings():
            warnings.simplefilter("error")
            millrace.Job.from_text(self.text, overrides=[watch], output_dir=self.path("out"))

    def test_every_mistake_is_in_one_exception(self):
        text = self.text.replace('units: [8, 6] act: RELU', 'units: [8, 0] act: RELU').replace('"hw" units', '"hv" units')
        with self.assertRaises(millrace.ConfigError) as caught:
            millrace.Job.from_text(text, origin="my job")
        self.assertEqual(caught.exception.code, "invalid configuration")
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(str(caught.exception), '''\
my job:16:45: error: units must be at least 1, not 0
  16 |   layer { name: "h" fc { in: "x" units: [8, 0] act: RELU } }
     |                                             ^
my job:18:30: error: no layer or slot "hv"; did you mean "h"?
  18 |   layer { name: "y" fc { in: "hv" units: 2 act: SOFTMAX } }
     |                              ^~~~
2 errors''')

    def test_what_is_not_there_is_named(self):
        with self.assertRaisesRegex(millrace.ConfigError, 'no file "nothing.prototxt" in ' + self.folder):
            millrace.Job(self.path("nothing.prototxt"))
        with self.assertRaisesRegex(millrace.NotFoundError, 'nothing-\\*'):
            millrace.Job.from_text(self.text.replace("part-*", "nothing-*"))

    def test_a_bad_line_is_a_data_error_with_its_place(self):
        lines = support.read(self.path("part-1")).splitlines()
        lines[6] = lines[6].replace("1 ", "x ", 1)
        support.write(self.path("part-1"), "\n".join(lines) + "\n")
        with self.assertRaises(millrace.DataError) as caught:
            millrace.Job.from_text(self.text).run()
        self.assertIn(self.path("part-1") + ':7:1: slot "label"', str(caught.exception))

    def test_a_file_name_of_any_bytes_can_be_told(self):
        os.mkdir(self.path("odd"))
        with open(os.fsencode(self.path("odd")) + b"/\xff\xfe", "wb") as file:
            file.write(b"1 x\n")
        with self.assertRaises(millrace.DataError) as caught:
            millrace.Job.from_text(self.text.replace("/part-*", "/odd")).run()
        self.assertIn(r"\xff\xfe:1:", str(caught.exception))

    def test_a_suspicious_job_warns(self):
        file = self.path("part-0")
        text = self.text.replace('filelist: "%s/part-*"' % self.folder, 'filelist: ["%s", "%s"]' % (file, file))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            millrace.Job.from_text(text)
        self.assertEqual([w.category for w in caught], [millrace.MillraceWarning])
        self.assertIn('"%s" is named more than once' % file, str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)

    def test_other_threads_run_while_a_job_waits(self):
        # The pipe waits for a file that another Python thread makes: it could not, if the job kept the GIL.
        go = self.path("go")
        text = self.text.replace("batch_size: 16",
                                 'batch_size: 16 pipe_command: "while [ ! -e %s ]; do sleep 0.02; done; cat"' % go)
        thread = threading.Thread(target=lambda: support.write(go, ""))
        timer = threading.Timer(0.2, thread.start)
        timer.start()
        self.assertEqual(millrace.Job.from_text(text).run().examples, 100)
        timer.join()

    def test_ctrl_c_ends_a_run_that_waits_for_its_pipe(self):
        text = self.text.replace("batch_size: 16", 'batch_size: 16 pipe_command: "sleep 3000; cat"')
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        job = millrace.Job.from_text(text, output_dir=self.path("out"))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            job.run()
        self.assertTrue(os.path.isdir(self.path("out/checkpoints")))
        # The process is as before: signals arrive, and the job runs.
        self.assertEqual(millrace.Job.from_text(self.text).run().examples, 100)

    def test_a_job_runs_in_any_thread(self):
        reports = []
        threads = [threading.Thread(target=lambda: reports.append(millrace.Job.from_text(self.text).run()))
                   for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([report.examples for report in reports], [100, 100, 100])
        self.assertEqual(reports[0].metrics, reports[1].metrics)

    def test_the_job_shows_its_operators_and_its_fields(self):
        job = millrace.Job.from_text(self.text, overrides=["data_desc.batch_size=32"])
        self.assertIn("batch_size: 32", job.config)
        self.assertIn("op[0]->Type(): ", job.ops)


if __name__ == "__main__":
    unittest.main()
