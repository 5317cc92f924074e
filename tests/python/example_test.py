"""The examples of examples/python_* run, and do what their texts say."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

import support

import millrace


def load(folder):
    path = os.path.join(support.ROOT, "examples", folder, "train.py")
    spec = importlib.util.spec_from_file_location(folder, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ExampleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for guard in (millrace.program_guard(millrace.Program(), millrace.Program()), millrace.scope_guard(millrace.Scope())):
            guard.__enter__()
            self.addCleanup(guard.__exit__, None, None, None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_python_feed_learns(self):
        accuracy, correlation = load("python_feed").main(160)
        self.assertGreater(accuracy, 0.75)
        self.assertGreater(correlation, 0.98)

    def test_python_generator_learns_the_order_of_the_cities(self):
        scores = load("python_generator").main(self.folder)
        self.assertEqual(sorted(scores, key=scores.get), ["Linz", "Graz", "Bern", "Ulm"])

    def test_python_reader_finds_the_line(self):
        slope, offset = load("python_reader").main(600)
        self.assertAlmostEqual(slope, -2, delta=0.1)
        self.assertAlmostEqual(offset, 3, delta=0.1)

    def test_python_wide_deep_is_the_job_of_configs(self):
        support.run("clickgen", "--output_dir=" + self.path("clicks"), "--rows=3000", "--test_rows=600", "--parts=2")
        report = load("python_wide_deep").main(self.path("clicks"), self.path("out"))
        losses = [float(entry["loss"][0]) for entry in report.history]
        job = millrace.Job(os.path.join(support.ROOT, "configs", "wide_deep.prototxt"), output_dir=self.path("job"), overrides=[
            "thread_num=1", "update_mode=SERIAL", 'filelist="%s"' % self.path("clicks/train/part-*"),
            "fetch_config.print_period=1"])
        job.run()
        wanted = [json.loads(line) for line in support.read(self.path("job/metrics.jsonl")).splitlines()]
        wanted = [line["loss"] for line in wanted if "loss" in line]
        self.assertEqual(len(wanted), 6)
        scope = millrace.global_scope()
        for i in range(3):
            self.assertTrue((scope.get("h.w_%d" % i) == job.parameter("h.w_%d" % i)).all())
        lines = support.read(self.path("clicks/test/part-00000"))
        ours = millrace.Predictor(self.path("out/model")).predict_lines(lines)
        self.assertTrue((ours == millrace.Predictor(self.path("job/model")).predict_lines(lines)).all())
        self.assertLess(len(losses), 7)

        # What was saved trains in `trainer` to the same bits.
        support.run("trainer", "--trainer_desc=" + self.path("out/job.prototxt"), "--output_dir=" + self.path("trainer"))
        lines = [json.loads(line) for line in support.read(self.path("trainer/metrics.jsonl")).splitlines()]
        name = [key for key in lines[0] if key.startswith("mean")][0]
        self.assertEqual([line[name] for line in lines if name in line], wanted)

    def test_they_run_as_their_texts_say(self):
        for folder, arguments in (("python_feed", ["20"]), ("python_generator", []), ("python_reader", ["20"])):
            script = os.path.join(support.ROOT, "examples", folder, "train.py")
            done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
