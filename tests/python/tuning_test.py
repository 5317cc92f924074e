"""The scripts of examples/tuning run, and do what its README says."""

import os
import subprocess
import sys
import tempfile
import unittest

import support

support.with_packages("FRAMES_PYTHON", ["optuna", "mlflow"])


class TuningTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.run_script("rows.py")

    def run_script(self, name, *arguments):
        done = subprocess.run([sys.executable, os.path.join(support.ROOT, "examples", "tuning", name), *arguments], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_optuna_finds_settings(self):
        support.package(self, "optuna")
        found = self.run_script("optuna_study.py", "8")
        self.assertRegex(found, r"best of 8: trial \d, auc 0\.8\d+, \{'units': ")
        self.assertTrue(os.path.isdir(os.path.join(self.folder, "out", "trial-7")))

    def test_mlflow_has_settings_curves_and_the_model(self):
        mlflow = support.package(self, "mlflow")
        run = self.run_script("mlflow_run.py", "model.optimizer.adam.lr=0.02", "epochs=3").split()[-1]
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        client = mlflow.MlflowClient()
        found = client.get_run(run).data
        self.assertEqual(found.params, {"model.optimizer.adam.lr": "0.02", "epochs": "3"})
        self.assertGreater(found.metrics["eval_auc"], 0.8)
        self.assertEqual([point.step for point in client.get_metric_history(run, "eval_auc")], [1, 2, 3])
        self.assertEqual([one.path for one in client.list_artifacts(run)], ["job.prototxt", "model"])

    def test_the_job_trains(self):
        import millrace
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        report = millrace.Job(os.path.join(support.ROOT, "examples", "tuning", "job.prototxt"), output_dir="out").run(verbose=False)
        self.assertGreater(report.evaluation["auc"], 0.8)


if __name__ == "__main__":
    unittest.main()
