"""Jobs that Paddle authored and trained, run by `trainer` and scored by `predictor`.

    interop_jobs_test.py BIN_DIR JOB       exit code 77: the jobs are not there

One thread: each batch's numbers, the parameters at the end, and the predictions are Paddle's, fused and unfused. Two
Hogwild threads: the AUC at the end is within 0.02. Paddle's saved model predicts the same.
"""

import os
import sys
import tempfile

import support

TOLERANCE = 1e-4
HOGWILD_AUC = 0.02
# What the operator auc over the whole pass counts: clicks and others by score, worst first.
COUNTS = ["_generated_var_2", "_generated_var_3"]


def table(path):
    return [line.split("\t") for line in support.read(path).splitlines()]


def job_text(source, variables, extra):
    fetches = "".join("fetch_var_names: \"%s\" " % name for name in variables.values())
    return "\n".join([
        'filelist: "%s/data/part-*"' % source,
        'program { main: "%s/main_program.bin" init_dir: "%s/init" %s }' % (source, source, extra),
        "fetch_config { %s print_period: 1 }" % fetches,
        "data_desc {\n%s}\n" % support.read(source + "/data_feed.prototxt"),
    ])


def train(bin_dir, source, folder, variables, *settings):
    os.makedirs(folder)
    job = support.write(folder + "/job.prototxt", job_text(source, variables, 'save_dir: "%s/final"' % folder))
    arguments = [bin_dir + "/trainer", "--trainer_desc=" + job, "--output_dir=" + folder]
    for setting in settings:
        arguments += ["--set", setting]
    support.run(*arguments)
    return support.metrics(folder)


def compare_batches(lines, wanted, variables):
    if len(lines) != len(wanted) - 1:
        support.fail("%d batches, not %d" % (len(lines), len(wanted) - 1))
    for line, row in zip(lines, wanted[1:]):
        for name, value in zip(wanted[0][1:], row[1:]):
            if support.differs(line[variables[name]], float(value), TOLERANCE):
                support.fail("batch %s: %s is %r, Paddle's %s" % (row[0], name, line[variables[name]], value))


def compare_predictions(bin_dir, source, folder):
    first = support.read(source + "/data/part-000").splitlines()[:64]
    lines = support.write(folder + "/lines", "\n".join(first) + "\n")
    scores = support.run(bin_dir + "/predictor", "--model_dir=" + source + "/inference", "--input=" + lines,
                         "--data_feed=" + source + "/data_feed.prototxt").split()
    wanted = [row[-1] for row in table(source + "/predict.tsv")]
    if len(scores) != len(wanted):
        support.fail("%d predictions, not %d" % (len(scores), len(wanted)))
    for i, (score, value) in enumerate(zip(scores, wanted)):
        if support.differs(float(score), float(value), TOLERANCE):
            support.fail("prediction %d is %s, Paddle's %s" % (i, score, value))


def auc_of(folder):
    """The AUC of a pass, from the counts that it left among the variables."""
    clicks, others = (support.read_variable(os.path.join(folder, name))[1] for name in COUNTS)
    area = below = 0
    for click, other in zip(clicks, others):
        area += click * (below + other / 2)
        below += other
    return area / (sum(clicks) * sum(others))


def hogwild_auc(bin_dir, source, folder, variables):
    train(bin_dir, source, folder, variables, "thread_num=2",
          "hogwild_param={%s}" % " ".join('stat_var_names: "%s"' % name for name in COUNTS))
    return auc_of(folder + "/final")


def main():
    bin_dir, name = sys.argv[1:]
    source = os.path.abspath(os.path.join(support.SHARED, "interop", name))
    if not os.path.isdir(source):
        support.skip(source + " is not there")
    variables = {row[0]: row[1] for row in table(source + "/fetch_vars.tsv")}
    del variables["predict"]
    wanted = table(source + "/fetch.tsv")
    with tempfile.TemporaryDirectory() as folder:
        for fuse in ("true", "false"):
            out = folder + "/fuse_" + fuse
            lines = train(bin_dir, source, out, variables, "update_mode=SERIAL", "fuse=" + fuse)
            compare_batches(lines, wanted, variables)
            support.compare_variables(out + "/final", source + "/final", TOLERANCE, TOLERANCE)
        serial = auc_of(out + "/final")
        if support.differs(serial, float(wanted[-1][wanted[0].index("auc")]), TOLERANCE):
            support.fail("the counts at the end give an AUC of %r" % serial)
        # Under a sanitizer threads meet far more often than in a program that anybody trains with.
        if "sanitizers" in support.run(bin_dir + "/trainer", "--version"):
            return
        hogwild = sorted(hogwild_auc(bin_dir, source, folder + "/hogwild_%d" % i, variables) for i in range(3))
        if not abs(hogwild[1] - serial) <= HOGWILD_AUC:
            support.fail("two threads end at an AUC of %.4f (middle of three runs), one at %.4f" % (hogwild[1], serial))
        compare_predictions(bin_dir, source, folder)


if __name__ == "__main__":
    main()
