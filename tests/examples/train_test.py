"""Trains the jobs of configs/demo.prototxt and examples/ and looks at what they reach.

    train_test.py BIN_DIR demo|adult|census|columns       exit code 77: the data is not there
"""

import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("MILLRACE_SHARED", os.path.join(ROOT, "..", "shared"))
SKIPPED = 77


def run(program, *arguments):
    """Runs a program in the root of the checkout; its output is shown when it fails."""
    done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("%s ended with %d:\n%s%s" % (program, done.returncode, done.stdout, done.stderr))
    return done


def train(bin_dir, job, folder, files, eval_files):
    """Trains on other files than the job names and returns run.json."""
    run(bin_dir + "/trainer", "--trainer_desc=" + job, "--output_dir=" + folder, "--set",
        "filelist=[%s]" % json.dumps(files), "--set", "eval.filelist=[%s]" % json.dumps(eval_files))
    with open(folder + "/run.json", encoding="utf-8") as file:
        return json.load(file)


def shared(*path):
    """A path of the shared data; ends the test when it is not there."""
    found = os.path.join(SHARED, "data", *path)
    if not os.path.exists(found):
        print("skipped: %s is not there" % found)
        sys.exit(SKIPPED)
    return found


def expect(what, value, least):
    print("%s: %.4f, at least %.4f wanted" % (what, value, least))
    if not value >= least:
        sys.exit(1)


def demo(bin_dir, folder):
    clicks = folder + "/clicks"
    run(bin_dir + "/clickgen", "--output_dir=" + clicks, "--rows=20000", "--test_rows=3000", "--parts=3",
        "--format=raw", "--gzip", "--vocabulary=100")
    result = train(bin_dir, "configs/demo.prototxt", folder + "/run", clicks + "/train/part-*", clicks + "/test/part-*")
    expect("examples", result["examples"], 20000)
    expect("evaluated examples", result["eval"]["examples"], 3000)
    expect("AUC", result["eval"]["auc"], 0.70)
    scores = run(bin_dir + "/predictor", "--model_dir=" + folder + "/run/model", "--allow_model_command",
                 "--input=" + clicks + "/test/part-00000.gz").stdout.split()
    expect("predictions", len(scores), 1000)
    expect("smallest prediction", min(map(float, scores)), 0)


def adult(bin_dir, folder):
    result = train(bin_dir, "examples/adult/job.prototxt", folder, shared("adult", "adult.data.gz"),
                   shared("adult", "adult.test.gz"))
    expect("test AUC of Adult", result["eval"]["auc"], 0.912)
    result = train(bin_dir, "examples/adult/features.prototxt", folder + "/columns", shared("adult", "adult.data.gz"),
                   shared("adult", "adult.test.gz"))
    expect("test AUC of Adult without a command", result["eval"]["auc"], 0.925)


def census(bin_dir, folder):
    source = shared("census_income_kdd", "census_income_1994_1995_train.csv.gz")
    run(sys.executable, "examples/census/prepare.py", source, folder + "/data")
    result = train(bin_dir, "examples/census/job.prototxt", folder + "/run", folder + "/data/train-*",
                   folder + "/data/test.csv")
    expect("evaluated examples", result["eval"]["examples"], 19952)
    expect("test AUC of Census", result["eval"]["auc"], 0.938)


def columns(bin_dir, folder):
    for name in ("census_income_kdd", "movielens_latest_small", "criteo_day0_10k"):
        shared(name)
    run("examples/columns/prepare.sh", os.path.join(SHARED, "data"), folder + "/data")
    # Of the 2,000 impressions of Criteo that test, 55 were clicked: the standard error of the AUC is 0.04.
    for job, files, rows, least in (("census", "census.%s.csv", 19952, 0.938), ("movielens", "ratings.%s.csv", 20167, 0.785),
                                    ("criteo", "criteo.%s.tsv", 2000, 0.69)):
        result = train(bin_dir, "examples/columns/%s.prototxt" % job, folder + "/" + job,
                       folder + "/data/" + files % "train", folder + "/data/" + files % "test")
        expect("evaluated examples of " + job, result["eval"]["examples"], rows)
        expect("test AUC of " + job, result["eval"]["auc"], least)
    # The files as they were published, packed and whole.
    for job, raw, rows in (("movielens", shared("movielens_latest_small", "ratings.csv.gz"), 100836),
                           ("criteo", shared("criteo_day0_10k", "day_0.part.txt.gz"), 10000)):
        result = train(bin_dir, "examples/columns/%s.prototxt" % job, folder + "/raw_" + job, raw, raw)
        expect("examples of the raw file of " + job, result["eval"]["examples"], rows)
    result = train(bin_dir, "examples/columns/two_tasks.prototxt", folder + "/two_tasks",
                   folder + "/data/census.train.csv", folder + "/data/census.test.csv")
    expect("test AUC of income", result["eval"]["income/auc"], 0.944)
    expect("test AUC of who never married", result["eval"]["unmarried/auc"], 0.994)


def main():
    job = {"demo": demo, "adult": adult, "census": census, "columns": columns}[sys.argv[2]]
    with tempfile.TemporaryDirectory() as folder:
        job(sys.argv[1], folder)


if __name__ == "__main__":
    main()
