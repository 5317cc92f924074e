#!/usr/bin/env python3
"""Compares a job of two tasks with LightGBM on Census-Income (KDD): AUC and seconds of both, as Markdown.

    LIGHTGBM_PYTHON=/path/bin/python bench/e2e/census_beside.py [--bin build/release/bin] [--seeds 3] [--rows test|before]

LIGHTGBM_PYTHON has lightgbm and pandas. Both read the raw CSV, learn from the rows before the last tenth with the survey's
weights, one thread, and score the last tenth; with --rows before, on which epochs and rounds were chosen, they learn from eight tenths
and score the ninth. examples/columns/two_tasks.prototxt learns both tasks at once; LightGBM has a model for each, which sees categories
as categories. AUC counts by the survey's weights, and once more each person once; one function measures both. Seconds are of
whole processes, start to end, reading included; processor seconds are of user and system.
"""
import argparse
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("MILLRACE_SHARED", os.path.join(ROOT, "..", "shared"))
SOURCE = os.path.join(SHARED, "data", "census_income_kdd", "census_income_1994_1995_train.csv.gz")
NINTH, LAST = 161614, 179571

sys.path.insert(0, os.path.join(ROOT, "examples", "census"))
from reader import FIELDS as NAMES  # noqa: E402  the columns, in order

LIGHTGBM = """
import json, sys
import lightgbm, pandas
folder, seed = sys.argv[1], int(sys.argv[2])
names, numbers, rounds = json.loads(sys.argv[3]), set(json.loads(sys.argv[4])), int(sys.argv[5])
fit, test = (pandas.read_csv(folder + name, names=names, skipinitialspace=True, keep_default_na=False)
             for name in ("/fit.csv", "/test.csv"))
for task in ("income", "unmarried"):
    # Income may see the marital status, as in the job; the other task must not.
    drop = ["income", "weight"] + (["marital_status"] if task == "unmarried" else [])
    x, z = fit.drop(columns=drop), test.drop(columns=drop)
    for column in x:
        if column not in numbers:
            words = sorted(set(x[column].astype(str)))
            x[column] = pandas.Categorical(x[column].astype(str), categories=words)
            z[column] = pandas.Categorical(z[column].astype(str), categories=words)
    y = fit["income"].astype(str).str.startswith("50000") if task == "income" else fit["marital_status"] == "Never married"
    settings = dict(objective="binary", learning_rate=0.05, num_leaves=31, num_threads=1, seed=seed, verbose=-1,
                    bagging_fraction=0.9, bagging_freq=1, feature_fraction=0.8)
    model = lightgbm.train(settings, lightgbm.Dataset(x, y.astype(int), weight=fit["weight"]), rounds)
    with open(folder + "/lightgbm." + task, "w") as file:
        file.writelines("%.9g\\n" % score for score in model.predict(z))
"""


def auc(scores, labels, weights):
    """Area under the ROC curve of weighted rows; equal scores count half."""
    rows = sorted(zip(scores, labels, weights))
    below = area = positive = 0.0
    place = 0
    while place < len(rows):
        end = place
        here = [0.0, 0.0]
        while end < len(rows) and rows[end][0] == rows[place][0]:
            here[rows[end][1]] += rows[end][2]
            end += 1
        area += here[1] * (below + here[0] / 2)
        below += here[0]
        positive += here[1]
        place = end
    return area / (below * positive)


def run(command):
    """Seconds and processor seconds of a command."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode != 0:
        sys.exit("%s\nexit %d\n%s" % (command[0], done.returncode, done.stderr[-2000:]))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def millrace(args, folder, seed):
    seconds = run([args.bin + "/trainer", "--trainer_desc=examples/columns/two_tasks.prototxt", "--output_dir=" + folder + "/out",
                   "--set", "thread_num=1", "--set", "seed=%d" % seed, "--set", "filelist=%s/fit.csv" % folder,
                   "--set", "eval.filelist=%s/test.csv" % folder, "--set", "eval.every_epochs=0"])
    run([args.bin + "/predictor", "--model_dir=" + folder + "/out/model", "--input=" + folder + "/test.csv",
         "--output=" + folder + "/scores"])
    with open(folder + "/scores", encoding="utf-8") as file:
        both = [[float(score) for score in line.split("\t")] for line in file]
    return dict(zip(("income", "unmarried"), zip(*both))), seconds


def lightgbm(args, folder, seed):
    numbers = ["age", "wage_per_hour", "capital_gains", "capital_losses", "dividends", "employers_persons", "weeks"]
    seconds = run([args.lightgbm, "-c", LIGHTGBM, folder, str(seed), json.dumps(NAMES), json.dumps(numbers), str(args.rounds)])
    found = {}
    for task in ("income", "unmarried"):
        with open(folder + "/lightgbm." + task, encoding="utf-8") as file:
            found[task] = [float(line) for line in file]
    return found, seconds


def shown(values, digits):
    return "%.*f [%.*f-%.*f]" % (digits, statistics.median(values), digits, min(values), digits, max(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--lightgbm", default=os.environ.get("LIGHTGBM_PYTHON", ""))
    parser.add_argument("--rounds", type=int, default=250)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", choices=("test", "before"), default="test")
    args = parser.parse_args()
    args.bin = os.path.abspath(args.bin)
    systems = {"Millrace, both tasks": millrace}
    if args.lightgbm:
        systems["LightGBM, a model for each"] = lightgbm
    with gzip.open(SOURCE, "rt", encoding="utf-8") as file:
        lines = file.readlines()
    first, end = (LAST, len(lines)) if args.rows == "test" else (NINTH, LAST)
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("fit", lines[:first]), ("test", lines[first:end])):
            with open(folder + "/" + name + ".csv", "w", encoding="utf-8") as file:
                file.writelines(part)
        rows = [dict(zip(NAMES, (cell.strip() for cell in line.split(",")))) for line in lines[first:end]]
        labels = {"income": [int(row["income"].startswith("50000")) for row in rows],
                  "unmarried": [int(row["marital_status"] == "Never married") for row in rows]}
        weights = [float(row["weight"]) for row in rows]
        found = {name: {"seconds": [], "processor": [], "income": [], "unmarried": [], "income, once": []} for name in systems}
        for seed in range(1, args.seeds + 1):
            for name, system in systems.items():
                scores, seconds = system(args, folder, seed)
                found[name]["seconds"].append(seconds[0])
                found[name]["processor"].append(seconds[1])
                for task in labels:
                    found[name][task].append(auc(scores[task], labels[task], weights))
                found[name]["income, once"].append(auc(scores["income"], labels["income"], [1.0] * len(rows)))
    print("%d rows to learn from, %d to score; median [least-most] of seeds 1 to %d\n" % (first, end - first, args.seeds))
    print("| | AUC income | AUC unmarried | AUC income, each person once | seconds | processor seconds |\n|---|---|---|---|---|---|")
    for name, values in found.items():
        print("| %s | %s | %s | %s | %s | %s |" % (name, shown(values["income"], 4), shown(values["unmarried"], 4),
                                                   shown(values["income, once"], 4), shown(values["seconds"], 1),
                                                   shown(values["processor"], 1)))


if __name__ == "__main__":
    main()
