"""Recommendation models that Paddle writes and trains, brought over and compared.

    recsys_test.py BIN_DIR MODEL       PADDLE_PYTHON names a Python with Paddle; exit code 77: there is none

In SERIAL mode each batch's loss and AUC, the parameters at the end and the predictions are Paddle's, fused and unfused;
what we save loads in Paddle and predicts the same there as here.
"""

import json
import os
import re
import sys
import tempfile

import support

TOLERANCE = 1e-4
# Adam moves a value by its rate (0.001) at every batch, whatever the size of the gradient: the rounding of a gradient
# that cancels moves it as well, and is all that a bias may hold. So values are compared absolutely.
FINAL_TOLERANCE = 3e-4
ANY = float("inf")
SAME_MODEL = 1e-5
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recsys_models.py")


def table(path):
    return [[float(value) for value in line.split("\t")] for line in support.read(path).splitlines()]


def compare_tables(what, got, wanted, tolerance):
    if len(got) != len(wanted):
        support.fail("%s: %d rows, not %d" % (what, len(got), len(wanted)))
    for row, (values, expected) in enumerate(zip(got, wanted)):
        for value, expect in zip(values, expected):
            if support.differs(value, expect, tolerance):
                support.fail("%s: row %d is %r, not %r" % (what, row, values, expected))


def train(bin_dir, folder, fuse):
    """Trains Paddle's job as it was exported, with save_dir uncommented; returns the run's folder."""
    out = folder + "/fuse_" + fuse
    job = re.sub(r"# (save_dir: )\"[^\"]*\"", r'\1"%s/final"' % out, support.read(folder + "/job/job.prototxt"))
    path = support.write(folder + "/fuse_%s.prototxt" % fuse, job)
    support.run(bin_dir + "/trainer", "--trainer_desc=" + path, "--output_dir=" + out, "--set", "update_mode=SERIAL",
                "--set", "fuse=" + fuse, "--set", "thread_num=1")
    return out


def check_operators(bin_dir, folder, ops):
    """The list is Paddle's; fully connected layers of paddle.nn.Linear run as ours do."""
    job = ("--trainer_desc=" + folder + "/job/job.prototxt", "--output_dir=" + folder + "/unused")
    lowered = support.run(bin_dir + "/trainer", *job, "--print_ops=lowered")
    wanted = "len(ops)=%d\n" % len(ops) + "".join("op[%d]->Type(): %s\n" % pair for pair in enumerate(ops))
    if lowered != wanted:
        support.fail("the operators are not Paddle's:\n" + lowered)
    fused = support.run(bin_dir + "/trainer", *job, "--print_ops=fused")
    # Two optimizers for one loss go back through each layer twice, which no fused operator does.
    goes_back_once = ops.count("elementwise_add_grad") <= ops.count("elementwise_add")
    if goes_back_once and "fused_fc_grad" not in fused:
        support.fail("no fused_fc_grad in:\n" + fused)


def scores(bin_dir, folder, *flags):
    """Of each line those that predictor gives it: one, or of more than two classes one of each."""
    support.run(bin_dir + "/predictor", "--output=" + folder + "/scores", *flags)
    return [[float(score) for score in line.split("\t")] for line in support.read(folder + "/scores").splitlines()]


def check_model(bin_dir, python, folder):
    """Holds what this trainer makes of a job against what recsys_models.train wrote beside it."""
    names = json.loads(support.read(folder + "/names.json"))
    check_operators(bin_dir, folder, names["ops"])
    for fuse in ("true", "false"):
        out = train(bin_dir, folder, fuse)
        got = [[line[name] for name in names["names"]] for line in support.metrics(out)]
        compare_tables("batches", got, table(folder + "/fetch.tsv"), TOLERANCE)
        support.compare_variables(out + "/final", folder + "/final", FINAL_TOLERANCE, ANY)
    lines = folder + "/data/part-000"
    ours = scores(bin_dir, folder, "--model_dir=" + out + "/paddle", "--input=" + lines)
    columns = len(ours[0])
    first = [row[-columns:] for row in table(folder + "/predict.tsv")]
    compare_tables("our predictions with our model", ours[:len(first)], first, TOLERANCE)
    support.run(python, MODELS, "predict", out + "/paddle/model", ",".join(names["columns"]), lines,
                folder + "/theirs.tsv")
    theirs = [row[-columns:] for row in table(folder + "/theirs.tsv")]
    compare_tables("Paddle's predictions with our model", theirs, ours, SAME_MODEL)
    of_paddle = scores(bin_dir, folder, "--model_dir=" + folder + "/inference", "--input=" + lines,
                       "--data_feed=" + folder + "/job/data_feed.prototxt")
    compare_tables("our predictions with Paddle's model", of_paddle[:len(first)], first, TOLERANCE)


def main():
    bin_dir, model = sys.argv[1:]
    python = support.peer("PADDLE_PYTHON", "paddle")
    with tempfile.TemporaryDirectory() as folder:
        folder += "/" + model
        support.run(python, MODELS, "train", model, folder)
        check_model(bin_dir, python, folder)


if __name__ == "__main__":
    main()
