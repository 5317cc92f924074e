"""A job in a notebook of a real Jupyter kernel: progress while it trains, a report as a table, curves, and an interrupt that leaves
the model."""

import glob
import json
import os
import signal
import sys
import tempfile
import threading
import time
import unittest

import support

support.with_packages("FRAMES_PYTHON", ["nbclient", "ipykernel", "matplotlib"])

BEGIN = """
import os, numpy, millrace
rng = numpy.random.default_rng(1)
city = rng.choice(["Wien", "Graz", "Linz"], size=4000)
data = {"city": city, "click": ((city == "Wien") ^ (rng.random(4000) < 0.2)).astype(int)}
job = millrace.Job.from_text('''
    epochs: %(epochs)d
    data_desc { name: "csv" batch_size: 32 feature { name: "label" from: "click" id {} is_dense: true } feature { name: "city" hash {} } }
    model {
      table { name: "t" dim: 4 optimizer { adagrad { lr: 0.1 } } }
      layer { name: "e" embedding { slots: "city" table: "t" } }
      layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
      loss { kind: LOG_LOSS in: "y" label: "label" }
      metric { kind: AUC }
      optimizer { adagrad { lr: 0.1 } }
    }''', output_dir="%(out)s")
"""


class NotebookTest(unittest.TestCase):
    def setUp(self):
        self.nbformat = support.package(self, "nbformat")
        self.nbclient = support.package(self, "nbclient")
        support.package(self, "ipykernel")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_cells(self, cells, epochs, during=None):
        """The outputs of each cell; `during(client)` is called by another thread."""
        cells = [BEGIN % {"epochs": epochs, "out": self.folder + "/out"}] + cells
        notebook = self.nbformat.v4.new_notebook(cells=[self.nbformat.v4.new_code_cell(cell) for cell in cells])
        kernel = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python",
                  "display_name": "this Python"}
        os.makedirs(self.folder + "/kernels/this")
        support.write(self.folder + "/kernels/this/kernel.json", json.dumps(kernel))
        # The kernel writes nothing in the home of who tests.
        os.environ.update(JUPYTER_PATH=self.folder, JUPYTER_RUNTIME_DIR=self.folder + "/runtime", IPYTHONDIR=self.folder + "/ipython")
        client = self.nbclient.NotebookClient(notebook, timeout=120, kernel_name="this", allow_errors=True)
        thread = threading.Thread(target=during, args=(client,)) if during else None
        if thread:
            thread.start()
        client.execute()
        if thread:
            thread.join()
        self.assertEqual(notebook.cells[0].outputs, [])
        return [cell.outputs for cell in notebook.cells[1:]]

    def test_a_report_is_a_table_and_its_curves_are_pictures(self):
        fitted, shown, plotted = self.run_cells(["report = job.fit(data, eval_data=data)", "report", "report.plot()"], 3)
        said = "".join(output.get("text", "") for output in fitted)
        self.assertIn("epoch 3", said)
        html = shown[0]["data"]["text/html"]
        self.assertIn("<table", html)
        self.assertIn("auc", html)
        pictures = [output["data"]["image/png"] for output in plotted if "image/png" in output.get("data", {})]
        self.assertTrue(pictures)
        self.assertGreater(len(pictures[0]), 4000)

    def test_an_interrupt_leaves_the_model(self):
        def interrupt(client):
            end = time.monotonic() + 60
            while not glob.glob(self.folder + "/out/checkpoints/step-*") and time.monotonic() < end:
                time.sleep(0.05)
            os.kill(client.km.provisioner.pid, signal.SIGINT)

        stopped, saved = self.run_cells(
            ["job.fit(data)", "job.save_model('%s/model')\nmillrace.Predictor('%s/model').predict({'city': ['Wien', 'Linz']}).tolist()" % (
                self.folder, self.folder)], 10**6, interrupt)
        self.assertEqual([output["ename"] for output in stopped if output["output_type"] == "error"], ["KeyboardInterrupt"])
        scores = json.loads(saved[-1]["data"]["text/plain"])
        self.assertGreater(scores[0], scores[1])


if __name__ == "__main__":
    unittest.main()
