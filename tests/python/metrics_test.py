"""Metrics of every entry point are those that numpy computes in double precision from the scores."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import support

import numpy as np

import millrace

# The prediction is sigmoid(x): nothing is learned.
JOB = """
thread_num: %(threads)d
%(mode)s
epochs: 1
%(files)s
data_desc {
  name: "csv"
  batch_size: 64
  feature { name: "label" from: "click" id {} is_dense: true }
  feature { name: "x" }
  feature { name: "w" is_used: %(weighted)s }
  feature { name: "user" hash {} }
}
model {
  layer { name: "y" fc { in: "x" units: 1 init { constant: 1 } } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" %(loss)s }
  metric { kind: AUC } metric { kind: LOGLOSS } metric { kind: NORMALIZED_ENTROPY } metric { kind: CALIBRATION }
  metric { kind: ACCURACY } metric { kind: MAE } metric { kind: RMSE } metric { kind: GAUC group: "user" }
  %(metrics)s
  optimizer { sgd { lr: 1e-30 } }
}
%(more)s
"""
WEIGHTED = 'sample_weight: "w"'
FETCH = 'fetch_config { fetch_var_names: ["batch_auc", "batch_logloss"] print_period: 1 }'


def columns(kind, count=6000, seed=3):
    """Rows whose logits are hard to tell apart, or beyond what a probability can say."""
    rng = np.random.default_rng(seed)
    x = {
        "wide": lambda: rng.normal(-2, 2, count), "narrow": lambda: -4 + 1e-4 * rng.normal(0, 1, count),
        "low": lambda: rng.normal(-18, 0.3, count), "saturated": lambda: 10 * rng.normal(0, 1.5, count),
        "tied": lambda: np.round(rng.normal(0, 1, count)), "one class": lambda: rng.normal(0, 1, count),
    }[kind]()
    x = np.float32(x)
    spread = np.float64(x) - np.float64(x).mean()
    share = 1 / (1 + np.exp(-spread / max(spread.std(), 1e-30)))
    click = (rng.random(count) < share).astype("int64")
    if kind == "one class":
        click[:] = 1
    users = np.array(["u%d" % u for u in rng.integers(0, 40, count)], dtype=object)
    users[rng.random(count) < 0.1] = None
    return {"click": click, "x": x, "w": np.float32(rng.choice([0.25, 1.0, 3.0], count)), "user": users}


def auc(scores, labels, weights):
    """Of every pair of a positive and a negative the share that is in order; ties count half."""
    values, place = np.unique(np.float64(scores), return_inverse=True)
    negatives = np.bincount(place, np.where(labels > 0, 0, weights), len(values))
    positives = np.bincount(place, np.where(labels > 0, weights, 0), len(values))
    if negatives.sum() == 0 or positives.sum() == 0:
        return float("nan")
    return (positives * (np.cumsum(negatives) - negatives / 2)).sum() / (negatives.sum() * positives.sum())


def exact(scores, data, weighted, by_logit=True):
    """Every metric of the job by its definition. The logits order what single precision makes one probability of."""
    p, y = np.float64(scores), np.float64(data["click"])
    x = np.float64(data["x"]) if by_logit else p
    weights = np.float64(data["w"]) if weighted else np.ones(len(y))
    q = np.clip(1 / (1 + np.exp(-x)) if by_logit else p, 1e-7, 1 - 1e-7)
    losses = np.where(y > 0, -np.log(q), -np.log(1 - q))
    rate = (weights * y).sum() / weights.sum()
    mean = lambda values: (weights * values).sum() / weights.sum()  # noqa: E731
    found = {"auc": auc(x, y, weights), "logloss": mean(losses), "calibration": (weights * p).sum() / (weights * y).sum(),
             "accuracy": mean((p >= 0.5) == (y > 0)), "mae": mean(np.abs(p - y)), "rmse": np.sqrt(mean((p - y) ** 2))}
    found["normalized_entropy"] = float("nan") if rate in (0, 1) else \
        found["logloss"] / -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))
    total = size = 0
    for user in {u for u in data["user"] if u is not None}:
        rows = data["user"] == user
        value = auc(x[rows], y[rows], weights[rows])
        if not np.isnan(value):
            total, size = total + value * weights[rows].sum(), size + weights[rows].sum()
    found["gauc"] = total / size if size else float("nan")
    return found


def write(path, data):
    with open(path, "w") as file:
        file.write("click,x,w,user\n")
        for click, x, w, user in zip(*(data[name] for name in ("click", "x", "w", "user"))):
            file.write("%d,%.9g,%.9g,%s\n" % (click, x, w, "" if user is None else user))


def text(threads=2, mode="update_mode: SERIAL", files="", loss="", metrics="", more="eval {}"):
    weighted = "true" if loss else "false"
    return JOB % locals()


class MetricsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *command, ranks=0):
        launcher = ["mpirun", "-n", str(ranks), "--bind-to", "none", "--oversubscribe"] if ranks else []
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run([*launcher, os.path.join(support.BIN, command[0]), *command[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def trainer(self, job, *more, ranks=0):
        with open(self.path("job.prototxt"), "w") as file:
            file.write(job)
        return self.run_tool("trainer", "--trainer_desc=" + self.path("job.prototxt"), "--output_dir=" + self.path("out"), *more,
                             ranks=ranks)

    def summary(self, name="run.json"):
        with open(self.path("out/" + name)) as file:
            return json.load(file)

    def check(self, found, wanted, where, tolerance=2e-6):
        for name, value in found.items():
            if name in wanted:
                np.testing.assert_allclose(np.float64(value if value is not None else "nan"), wanted[name], atol=tolerance,
                                           rtol=tolerance, err_msg="%s: %s" % (where, name))

    def test_every_entry_point_measures_what_numpy_does_in_double_precision(self):
        for kind in ("wide", "narrow", "low", "saturated", "tied", "one class"):
            for weighted in (False, True):
                where = kind + (", weighted" if weighted else "")
                data = columns(kind)
                write(self.path("rows.csv"), data)
                loss = WEIGHTED if weighted else ""
                job = millrace.Job.from_text(text(loss=loss))
                report = job.fit(columns(kind, 200), data, verbose=False)
                job.save_model(self.path("model"))
                scores = millrace.Predictor(self.path("model")).predict(data)
                wanted = exact(scores, data, weighted)
                self.check(report.evaluation, wanted, where + ", Python's evaluation", 1e-9)
                self.assertEqual(report.evaluation_bounds, {})
                missing = sum(user is None for user in data["user"])
                self.assertIn("evaluation: gauc: left out %d examples without a group" % missing, report.metric_remarks)
                predicted = self.run_tool("predictor", "--model_dir=" + self.path("model"), "--input=" + self.path("rows.csv"),
                                          "--output=" + self.path("scores"))
                shown = dict(re.findall(r"(\w+) ([0-9.]+|nan)  ", predicted.stderr))
                self.assertEqual(set(shown), {"auc", "logloss", "calibration"}, predicted.stderr)
                self.check(shown, wanted, where + ", predictor")
                files = 'filelist: "%s"' % self.path("rows.csv")
                self.trainer(text(files=files, loss=loss, more='eval { filelist: "%s" }' % self.path("rows.csv")))
                summary = self.summary()
                self.check(summary["eval"], wanted, where + ", trainer's evaluation", 1e-9)
                self.assertNotIn("metric_bounds", summary["eval"])
                # Training counts in steps, and says how far that may be from the exact value.
                bound = summary.get("metric_bounds", {}).get("auc", 0)
                if kind != "one class":
                    self.assertLessEqual(abs(summary["metrics"]["auc"] - wanted["auc"]), bound + 1e-12, where)
                self.check({name: value for name, value in summary["metrics"].items() if name != "auc"},
                           exact(scores, data, weighted, by_logit=False), where + ", training", 1e-9)
                self.trainer(text(files=files, loss=loss, more="infer: true"), "--resume=auto")
                self.check(self.summary("infer.json")["metrics"], wanted, where + ", infer", 1e-9)

    @unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun (openmpi-bin)")
    def test_ranks_measure_the_examples_of_all_of_them(self):
        whole = columns("narrow")
        for part in range(4):
            write(self.path("part-%d" % part), {name: values[part::4] for name, values in whole.items()})
        job = millrace.Job.from_text(text(more=""))
        job.fit(columns("narrow", 200), verbose=False)
        job.save_model(self.path("model"))
        wanted = exact(millrace.Predictor(self.path("model")).predict(whole), whole, False)
        files = 'filelist: "%s"' % self.path("part-*")
        more = 'eval { filelist: "%s" }' % self.path("part-*")
        self.trainer(text(files=files, mode="", threads=1, more=more), ranks=2)
        self.check(self.summary()["eval"], wanted, "evaluation on ranks", 1e-9)
        self.trainer(text(files=files, mode="", threads=1, more="infer: true"), "--resume=auto", ranks=2)
        self.check(self.summary("infer.json")["metrics"], wanted, "infer on ranks", 1e-9)

    def test_a_metric_of_probabilities_that_names_a_logit_reads_its_probability(self):
        data = columns("wide")
        kinds = ("AUC", "LOGLOSS", "NORMALIZED_ENTROPY", "CALIBRATION", "ACCURACY")
        metrics = " ".join('metric { kind: %s in: "y" name: "of_%s" }' % (kind, kind.lower()) for kind in kinds)
        found = millrace.Job.from_text(text(metrics=metrics)).fit(data, data, verbose=False).evaluation
        for kind in kinds:
            self.assertAlmostEqual(found["of_" + kind.lower()], found[kind.lower()], delta=1e-9)

    def test_a_prediction_that_is_no_probability_gives_nan_with_the_reason(self):
        data = columns("wide")
        metrics = 'metric { kind: LOGLOSS in: "z" name: "odd" } metric { kind: AUC in: "z" name: "order" }'
        job = text(metrics=metrics).replace("loss {", 'layer { name: "z" fc { in: "x" units: 1 init { constant: 1 } } }\n  loss {', 1)
        report = millrace.Job.from_text(job).fit(data, data, verbose=False)
        self.assertTrue(np.isnan(report.evaluation["odd"]))
        self.assertAlmostEqual(report.evaluation["order"], auc(data["x"], data["click"], np.ones(len(data["x"]))), delta=1e-9)
        self.assertTrue(any(line.startswith("evaluation: odd: nan: ") and '"z" is not a probability' in line
                            for line in report.metric_remarks), report.metric_remarks)

    def test_a_gauc_that_cannot_be_computed_says_why(self):
        data = columns("wide", 500)
        for users, why in ((np.full(500, None), "no example has a group"),
                           (np.array(["u%d" % i for i in range(500)]), "no group has examples of both labels")):
            report = millrace.Job.from_text(text()).fit(data, dict(data, user=users), verbose=False)
            self.assertTrue(np.isnan(report.evaluation["gauc"]))
            self.assertIn("evaluation: gauc: nan: " + why, report.metric_remarks)

    def test_examples_without_a_group_are_not_those_of_the_group_0(self):
        data = {"click": np.array([0, 1, 1, 0]), "x": np.float32([0, 1, -3, 3]), "w": np.ones(4, "float32"),
                "user": np.array([0, 0, None, None], dtype=object)}
        job = text().replace('name: "user" hash {}', 'name: "user" id {}')
        write(self.path("rows.csv"), data)
        self.trainer(job.replace("epochs: 1", 'epochs: 1 filelist: "%s"' % self.path("rows.csv")).replace(
            "eval {}", 'eval { filelist: "%s" }' % self.path("rows.csv")))
        self.assertEqual(self.summary()["eval"]["gauc"], 1)
        self.assertEqual(self.summary()["metrics"]["gauc"], 1)
        self.assertEqual(self.summary()["metric_remarks"], ["gauc: left out 2 examples without a group"])

    def test_predictions_where_the_log_loss_is_clipped_are_counted(self):
        data = columns("saturated")
        job = millrace.Job.from_text(text())
        report = job.fit(data, data, verbose=False)
        job.save_model(self.path("model"))
        scores = np.float64(millrace.Predictor(self.path("model")).predict(data))
        clipped = ((scores < 1e-7) | (scores > 1 - 1e-7)).sum()
        says = "logloss: %d predictions are nearer than 1e-07 to 0 or 1 and count as 1e-07 from it"
        self.assertIn(says % clipped, report.metric_remarks)
        line = says % (np.abs(np.float64(data["x"])) > np.log(1e7 - 1)).sum()
        self.assertIn("evaluation: " + line, report.metric_remarks)
        write(self.path("rows.csv"), data)
        self.assertIn(line, self.run_tool("predictor", "--model_dir=" + self.path("model"), "--input=" + self.path("rows.csv"),
                                          "--output=" + self.path("scores")).stderr)

    def test_a_weight_beyond_the_precision_of_sums_says_nothing_of_later_windows(self):
        data = columns("wide", 640)
        data["w"][:] = 1
        data["w"][0] = 1e17
        job = millrace.Job.from_text(text(threads=1, loss=WEIGHTED, more=FETCH))
        report = job.fit(data, verbose=False)
        job.save_model(self.path("model"))
        scores = millrace.Predictor(self.path("model")).predict(data)
        self.assertEqual(len(report.history), 10)
        for batch in range(1, 10):
            rows = slice(64 * batch, 64 * batch + 64)
            wanted = exact(scores[rows], {name: values[rows] for name, values in data.items()}, True, by_logit=False)
            self.assertAlmostEqual(report.history[batch]["batch_logloss"][0], wanted["logloss"], delta=1e-9)
            self.assertAlmostEqual(report.history[batch]["batch_auc"][0], wanted["auc"], delta=1e-2)

    def test_the_bound_of_what_is_counted_in_steps_is_shown(self):
        write(self.path("rows.csv"), columns("narrow"))
        files = 'filelist: "%s"' % self.path("rows.csv")
        shown = self.trainer(text(files=files, more=FETCH))
        self.assertRegex(shown.stderr, r"epoch 1: .*, auc 0\.\d+ \+- 0\.\d+")
        self.assertRegex(shown.stdout, r"batch_auc\[1\]:\[0\.\d+\] \+- 0\.\d+")


class CalibrationTest(unittest.TestCase):
    def test_calibrations_are_fitted_to_the_examples_themselves(self):
        for kind in ("narrow", "low", "tied", "wide"):
            data = columns(kind)
            for calibration in ("PLATT", "ISOTONIC"):
                raw, found = (self.scores(more, data) for more in ("eval {}", "eval { calibration { kind: %s } }" % calibration))
                wanted = (platt if calibration == "PLATT" else isotonic)(np.float64(raw), data["click"])
                np.testing.assert_allclose(found, wanted, atol=1e-4, err_msg=kind + ", " + calibration)

    def scores(self, more, data):
        job = millrace.Job.from_text(text(more=more))
        job.fit(data, data, verbose=False)
        with tempfile.TemporaryDirectory() as folder:
            job.save_model(os.path.join(folder, "model"))
            return millrace.Predictor(os.path.join(folder, "model")).predict(data).reshape(-1)


def platt(p, y):
    """The line through the logits of least log loss, with Platt's labels, in double precision."""
    z = np.log(p / (1 - p))
    center, width = z.mean(), z.std()
    z = (z - center) / width
    goal = np.where(y > 0, (y.sum() + 1) / (y.sum() + 2), 1 / (len(y) - y.sum() + 2))
    line = np.array([width, center])
    cost = lambda at: (np.logaddexp(0, at[0] * z + at[1]) - goal * (at[0] * z + at[1])).sum()  # noqa: E731
    for _ in range(100):
        q = 1 / (1 + np.exp(-line[0] * z - line[1]))
        error, bend = q - goal, q * (1 - q)
        curve = np.array([[(bend * z * z).sum(), (bend * z).sum()], [(bend * z).sum(), bend.sum()]])
        step = np.linalg.solve(curve, [(error * z).sum(), error.sum()])
        while cost(line - step) > cost(line) and np.abs(step).sum() > 1e-12:
            step = step / 2
        line = line - step
    return 1 / (1 + np.exp(-line[0] * z - line[1]))


def isotonic(p, y):
    """Values that never fall, of least squares; Laplace's share where labels are all alike at the ends."""
    values, place = np.unique(p, return_inverse=True)
    blocks = []
    for i, (count, ones) in enumerate(zip(np.bincount(place), np.bincount(place, y))):
        blocks.append([ones, count, i, i])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            ones, count, _, last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + ones, blocks[-1][1] + count, blocks[-1][2], last]
    found = np.empty(len(values))
    for ones, count, first, last in blocks:
        found[first:last + 1] = ones / count
    ones, count, _, last = blocks[0]
    if ones == 0:
        found[:last + 1] = min(1 / (count + 2), found[min(last + 1, len(found) - 1)])
    ones, count, first, _ = blocks[-1]
    if ones == count:
        found[first:] = max(1 - 1 / (count + 2), found[max(first - 1, 0)])
    return found[place]


if __name__ == "__main__":
    unittest.main()
