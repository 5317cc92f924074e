"""Folders that look like those of runs."""

import json
import os
import tempfile
import unittest


class WithRuns(unittest.TestCase):
    """A test with a temporary folder of runs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def folder(self, run):
        return os.path.join(self.root, run)

    def write(self, run, name, content):
        """Writes a file of a run, and returns the run's folder."""
        os.makedirs(self.folder(run), exist_ok=True)
        with open(os.path.join(self.folder(run), name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.folder(run)

    def write_run(self, run, job, first_auc, last_auc, saved=20):
        """A run with two evaluations, at the steps 10 and 20, which saved the model of one of them."""
        summary = {"examples": 640, "seconds": 2.0, "examples_per_second": 320.0, "batches": 20, "interrupted": False,
                   "metrics": {"auc": 0.9}, "eval": {"step": saved, "auc": last_auc if saved == 20 else first_auc},
                   "better": {"higher": ["auc"], "lower": ["loss"]}, "job": job}
        self.write(run, "run.json", json.dumps(summary))
        lines = [{"step": 5, "epoch": 0, "examples": 160, "loss": 0.7, "auc": None, "pair": [1, 2]}]
        lines += [{"step": step, "epoch": 0, "examples": 32 * step, "eval_loss": 1 - auc, "eval_auc": auc}
                  for step, auc in ((10, first_auc), (20, last_auc))]
        return self.write(run, "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
