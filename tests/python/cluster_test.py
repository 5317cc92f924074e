"""examples/cluster, a training script of Paddle's parameter servers, on one rank and on four: the files that each rank takes, what
is printed, the models of each interval, what they predict, and how it ends."""

import collections
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import support

import numpy as np

import millrace

EXAMPLE = os.path.join(support.ROOT, "examples", "cluster")
SHARED = os.environ.get("MILLRACE_SHARED", os.path.join(support.ROOT, "..", "shared"))
DAYS, PARTS, LINES = 3, 4, 6000

# Stands for `python`: the pipe_command of the script runs it on each file. It notes the rank and how many lines it gave it.
PYTHON = """#!/bin/sh
case "$*" in
  *ctr_reader.py) tee "$LOG/${PADDLE_TRAINER_ID:-0}.$$" | "%(python)s" "$@" ;;
  *) exec "%(python)s" "$@" ;;
esac
"""

# Trains as the script does, then tells what each rank predicts of the lines, and the model that rank 0 saved.
PREDICT = """
import json, os, sys
sys.path.insert(0, %(example)r)
import train
import numpy as np
fluid, fleet = train.fluid, train.fleet
train.do_exit = lambda code: None
train.train()
fleet.barrier_worker()
program, feeds, targets = fluid.load_inference_model(os.environ["MODEL_PATH"] + "/latest", scope=fluid.Scope())
feed = json.load(open(os.environ["FEED"]))
test = fleet.main_program.clone(for_test=True)
mine, = fleet._executor.run(test, feed=feed, fetch_list=[targets[0].name])
fleet.barrier_worker()
np.save(os.environ["MODEL_PATH"] + "/rank.%%d.npy" %% fleet.worker_index(), mine)
"""


def plain(text):
    """Lines of a script without indentation, spaces, comments and empty lines."""
    lines = (re.sub(r"#.*", "", line) for line in text.splitlines())
    return [line for line in ("".join(line.split()) for line in lines) if line]


class ClusterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(self.path("bin"))
        support.write(self.path("bin/python"), PYTHON % {"python": sys.executable})
        os.chmod(self.path("bin/python"), 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def make_data(self, name, days, lines, first):
        subprocess.run([sys.executable, os.path.join(EXAMPLE, "make_data.py"), self.path(name), str(days), str(lines), str(first)],
                       check=True)

    def command(self, ranks, script):
        if ranks == 1:
            return [sys.executable, script]
        if shutil.which("mpirun") is None or not os.path.exists(os.path.join(os.path.dirname(millrace.__file__), "libmillrace_mpi.so")):
            self.skipTest("there is no mpirun (openmpi-bin), or it is built without MPI (libopenmpi-dev)")
        return ["mpirun", "-n", str(ranks), "--bind-to", "none", "--oversubscribe", sys.executable, script]

    def environment(self, name, **variables):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PADDLE_") and key != "OPENBLAS_CORETYPE"}
        os.makedirs(self.path(name + ".log"))
        return {**kept, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "LOG": self.path(name + ".log"),
                "DATA_PATH": self.path("data"), "MODEL_PATH": self.path(name), "MODEL_SAVE_INTERVAL": "1",
                "PATH": self.path("bin") + os.pathsep + os.environ["PATH"], **variables}

    def run_script(self, ranks, name, script=os.path.join(EXAMPLE, "train.py"), **variables):
        """Runs it to its end, and returns what it printed."""
        done = subprocess.run(self.command(ranks, script), capture_output=True, text=True, check=False, timeout=300,
                              env=self.environment(name, **variables))
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done

    def wait_until(self, condition, process=None):
        while not condition():
            if process is not None:
                self.assertIsNone(process.poll(), "it ended")
            time.sleep(0.02)

    def taken(self, name):
        """The lines that ranks gave to the reader, and how many files each rank took."""
        lines, files = collections.Counter(), collections.Counter()
        for path in glob.glob(self.path(name + ".log/*")):
            files[int(os.path.basename(path).split(".")[0])] += 1
            lines.update(support.read(path).splitlines())
        return lines, files

    def unseen(self):
        """Lines of a day that no training has seen, and whether they were clicked."""
        self.make_data("unseen", 1, 4000, 20)
        texts = [subprocess.run([sys.executable, os.path.join(EXAMPLE, "ctr_reader.py")], input=support.read(part), check=True, text=True,
                                capture_output=True).stdout for part in sorted(glob.glob(self.path("unseen/*/part-*")))]
        text = "".join(texts)
        return text, np.array([line.endswith(" 1") for line in text.splitlines()])

    def test_the_script_is_that_of_paddle_but_for_its_imports(self):
        found = glob.glob(os.path.join(SHARED, "seeds", "004_*"))
        if not found:
            self.skipTest("no shared data: set MILLRACE_SHARED, or put shared/ beside the checkout")
        theirs = []
        for number, line in re.findall(r"^ *(\d+)\. ?(.*)$", support.read(found[0]), re.MULTILINE):
            if int(number) != len(theirs) + 1:
                break
            theirs.append(line)
        self.assertGreater(len(theirs), 120)
        theirs, ours = plain("\n".join(theirs)), plain(support.read(os.path.join(EXAMPLE, "train.py")))
        # A function that assigns a setting has to say that it is the module's.
        self.assertEqual([line for line in ours[ours.index(theirs[0]):] if not line.startswith("global")], theirs)

    def test_four_ranks_train_as_one_does(self):
        self.make_data("data", DAYS, LINES, 1)
        given = collections.Counter(line for part in glob.glob(self.path("data/*/part-*")) for line in support.read(part).splitlines())
        text, clicked = self.unseen()
        quality = {}
        for ranks in (1, 4):
            name = "models%d" % ranks
            # Often enough that a single file makes rank 0 print: which days it has one depends on who is done first.
            done = self.run_script(ranks, name, PRINT_PERIOD="2")
            lines, files = self.taken(name)
            self.assertEqual(lines, given)  # each line once
            self.assertEqual((sorted(files), sum(files.values())), (list(range(ranks)), DAYS * PARTS))
            # Each trainer says how its days went; the first alone what is fetched, the count being of all trainers.
            self.assertEqual(done.stdout.count(" finished, pass_time"), DAYS * ranks)
            self.assertEqual(done.stdout.count("training task is finished!"), ranks)
            counted = [float(auc) for auc in re.findall(r", auc\[1\]:\[(\S+)\], batch_auc", done.stdout)]
            self.assertGreaterEqual(len(counted), DAYS)
            self.assertGreater(counted[-1], 0.6)
            self.assertEqual(done.stderr.count('class_name: "MultiTrainer"'), DAYS)
            self.assertEqual(sorted(os.listdir(self.path(name))), ["2026-01-01", "2026-01-02", "latest"])
            for saved in ("2026-01-01", "2026-01-02", "latest"):
                names = support.read(self.path("%s/%s/feed_online_names" % (name, saved)))
                self.assertRegex(names, "^deep_input_name:.*\nwide_input_name:")
            scores = millrace.Predictor(self.path(name + "/latest")).predict_lines(text)
            support.write(self.path("lines"), text)
            support.run("predictor", "--model_dir=" + self.path(name + "/latest"), "--input=" + self.path("lines"),
                        "--output=" + self.path("scores"))
            np.testing.assert_allclose(np.loadtxt(self.path("scores")), scores, rtol=1e-5)
            quality[ranks] = (scores[clicked][:, None] > scores[~clicked][None]).mean()
        self.assertGreater(quality[1], 0.74)
        self.assertLess(abs(quality[1] - quality[4]), 0.02, quality)

    def test_a_model_of_four_ranks_predicts_as_they_do(self):
        self.make_data("data", 2, LINES, 1)
        text, _ = self.unseen()
        names = ["sparse_slot_%d" % slot for slot in (1, 2, 3, 4)] + ["sparse_lr_index", "label"]
        feed = {name: [] for name in names}
        for line in text.splitlines()[:50]:
            words = [int(word) for word in line.split()]
            for name in names:
                feed[name].append(words[1:1 + words[0]])
                words = words[1 + words[0]:]
        support.write(self.path("feed"), json.dumps(feed))
        script = support.write(self.path("script.py"), PREDICT % {"example": EXAMPLE})
        self.run_script(4, "models", script, FEED=self.path("feed"))
        scores = millrace.Predictor(self.path("models/latest")).predict_lines("".join(text.splitlines(True)[:50]))
        for rank in range(4):
            mine = np.load(self.path("models/rank.%d.npy" % rank))
            np.testing.assert_allclose(mine[:, 1], scores, rtol=1e-5)

    def test_an_end_leaves_the_models_of_the_days_before(self):
        self.make_data("data", 30, 2000, 1)
        for ending, said in ((signal.SIGINT, ""), (signal.SIGKILL, "signal 9")):
            name = "ended%d" % ending
            with open(self.path(name + ".out"), "w+", encoding="utf-8") as out, open(self.path(name + ".err"), "w+", encoding="utf-8") as err:
                process = subprocess.Popen(self.command(4, os.path.join(EXAMPLE, "train.py")), env=self.environment(name), stdout=out,
                                           stderr=err)
                self.addCleanup(process.kill)
                self.wait_until(lambda: os.path.isdir(self.path(name + "/2026-01-02")), process)
                ranks = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True)
                ranks = [int(pid) for pid in ranks.stdout.split()]
                os.kill(process.pid if ending == signal.SIGINT else ranks[2], ending)
                self.assertNotEqual(process.wait(60), 0)
                self.wait_until(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in ranks))
                self.assertIn(said, support.read(self.path(name + ".err")))
            whole = [day for day in os.listdir(self.path(name)) if re.fullmatch("2026-01-..", day)]
            self.assertGreaterEqual(len(whole), 2)
            for day in whole:
                millrace.Predictor(self.path(name + "/" + day))


if __name__ == "__main__":
    unittest.main()
