"""The examples of examples/cluster and examples/python_* run, and do what their texts say."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import support

import numpy

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

    def cluster(self, script, *arguments, code=0, **variables):
        """Runs a script of examples/cluster in the folder, with a `python` at hand, and returns what it wrote."""
        here = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE_") and name != "TRAINING_ROLE"}
        done = subprocess.run([sys.executable, os.path.join(support.ROOT, "examples", "cluster", script), *arguments], cwd=self.folder,
                              env={**here, **variables, "PATH": self.path("bin") + os.pathsep + os.environ["PATH"]},
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr[-2000:])
        return done.stdout, done.stderr

    def test_cluster_trains_saves_and_predicts(self):
        os.mkdir(self.path("bin"))
        support.write(self.path("bin/python"), '#!/bin/sh\nexec "%s" "$@"\n' % sys.executable)
        os.chmod(self.path("bin/python"), 0o755)
        self.cluster("make_data.py", "data")
        out, err = self.cluster("train.py")
        self.assertEqual([line for line in out.splitlines() if " finished" in line and "epoch" in line][2][:32],
                         "trainer id: 0 epoch 2 finished, ")
        printed = re.findall(r"batch: \[(\d+)\], cost\[1\]:\[(\S+)\], auc\[1\]:\[(\S+)\], batch_auc\[1\]:\[\S+\]$", out, re.MULTILINE)
        self.assertEqual({int(batch) % 10 for batch, _, _ in printed}, {0})
        self.assertGreater(float(printed[-1][2]), 0.65)
        self.assertIn('class_name: "MultiTrainer"', err)
        self.assertIn("op[0]->Type(): lookup_table\n", err)
        self.assertEqual(sorted(os.listdir(self.path("models"))), ["2026-01-01", "2026-01-02", "latest"])
        names = dict(line.split(":") for line in support.read(self.path("models/latest/feed_online_names")).splitlines())
        self.assertEqual(sorted(names), ["deep_input_name", "wide_input_name"])

        # A day that it has not seen, by the model that it saved.
        self.cluster("make_data.py", "unseen", "1", "4000", "20")
        lines = subprocess.run([sys.executable, os.path.join(support.ROOT, "examples", "cluster", "ctr_reader.py")], check=True, text=True,
                               input=support.read(self.path("unseen/2026-01-20/part-000")), capture_output=True).stdout
        model = millrace.Predictor(self.path("models/latest"))
        self.assertEqual([slot.name for slot in model.slots if not slot.is_needed], ["label"])
        scores = model.predict_lines(lines)
        clicked = numpy.array([line.endswith(" 1") for line in lines.splitlines()])
        self.assertEqual(len(scores), 1000)
        self.assertGreater((scores[clicked][:, None] > scores[~clicked][None]).mean(), 0.75)
        online = millrace.Predictor(self.path("models/latest"), feed=list(names.values()))
        self.assertEqual([(slot.name, slot.width) for slot in online.slots], list(zip(names.values(), (32, 1))))
        program, feeds, (predict, auc, _) = millrace.load_inference_model(self.path("models/latest"))
        self.assertEqual(feeds[-1], "label")
        self.assertEqual([program.var(name).shape for name in names.values()], [(-1, 32), (-1, 1)])
        self.assertEqual((predict.shape, auc.shape), ((-1, 2), (1,)))

        # What launchers of before start.
        out, err = self.cluster("train.py", TRAINING_ROLE="PSERVER")
        self.assertEqual(out, "run pserver\n")
        self.assertIn("there is nothing to serve", err)
        _, err = self.cluster("train.py", code=1, TRAINING_ROLE="PSERVER", LATEST_MODEL_PATH="models/latest")
        self.assertIn("start no servers", err)
        _, err = self.cluster("train.py", code=1, PADDLE_TRAINERS_NUM="2", PADDLE_TRAINER_ID="1")
        self.assertRegex(err, r"would train a model of its own.*mpirun -n 2 python \S+/train.py")

    def test_they_run_as_their_texts_say(self):
        for folder, arguments in (("python_feed", ["20"]), ("python_generator", []), ("python_reader", ["20"])):
            script = os.path.join(support.ROOT, "examples", folder, "train.py")
            done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
