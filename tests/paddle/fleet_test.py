"""Jobs that fleet wrote for workers of a parameter server, saved by scripts/export_from_paddle.py and run here.

    fleet_test.py BIN_DIR jobs|cluster|tables    PADDLE_PYTHON names a Python with Paddle; exit code 77: there is none

jobs: every mode trains, and what is not supported is refused by name. cluster: the loss of Paddle's own server and
worker over the same lines. tables: rows that a server saved start a job, and the other way round.
"""

import gzip
import math
import os
import random
import sys
import tempfile

import support

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fleet_models.py")
LINES = 8000


def write_lines(path):
    r = random.Random(3)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(LINES):
            ids = [r.randrange(200) for _ in range(r.randrange(1, 4))]
            x = [r.gauss(0, 1) for _ in range(3)]
            score = x[0] + sum(1 if i % 2 else -1 for i in ids)
            file.write("1 %d 3 %.3f %.3f %.3f %d %s\n" % (r.random() < 1 / (1 + math.exp(-score)), *x, len(ids),
                                                         " ".join(map(str, ids))))


class Saved:
    def __init__(self, bin_dir, python, kind, top):
        self.bin, self.folder = bin_dir, top + "/" + kind
        os.mkdir(self.folder)
        write_lines(self.folder + "/lines")
        self.said = support.run(python, MODELS, "save", kind, self.folder, cwd=self.folder)

    def job(self):
        return support.read(self.folder + "/job/job.prototxt")

    def train(self, *settings):
        """The losses of all batches."""
        flags = [word for setting in ("update_mode=SERIAL",) + settings for word in ("--set", setting)]
        support.run(self.bin + "/trainer", "--trainer_desc=" + self.folder + "/job/job.prototxt",
                    "--output_dir=" + self.folder + "/out", *flags)
        return [line["mean_1.tmp_0"] for line in support.metrics(self.folder + "/out") if "mean_1.tmp_0" in line]


def mean(values):
    return sum(values) / len(values)


def check_refusals(saved):
    for kind, parts in (("accessor", ("embedx_threshold 3", "weight_bounds -1, 1")),
                        ("pslib_counts", ("accessor DownpourCtrAccessor shows counts",)),
                        ("clicks", ("entry show_click_entry:label:label",)),
                        ("unmade", ("have no value that training could start from", "fc_0.w_0"))):
        said = saved(kind).said
        for part in ("refused: ",) + parts:
            if part not in said:
                support.fail("%s: no %r in\n%s" % (kind, part, said[-3000:]))


def check_jobs(saved):
    for kind in ("async", "async_embedding", "async_shared", "async_sgd", "sync", "geo", "distributed", "transpiled",
                 "collective", "pslib", "huge"):
        job = saved(kind)
        losses = job.train()
        if len(losses) != LINES // 40 or not mean(losses[-50:]) < mean(losses[:20]) - 0.08:
            support.fail("%s does not learn: %r" % (kind, losses))
        if kind == "huge":
            continue  # as a matrix, its rows would fill the machine
        if not os.path.exists(job.folder + "/out/paddle/model.pdmodel"):
            support.fail("%s: no model for Paddle" % kind)
        if ("DownpourLiteWorker" in job.job()) != kind.startswith("async"):
            support.fail("%s has another worker:\n%s" % (kind, job.job()))
    check_refusals(saved)


def check_cluster(saved, python):
    """Paddle's worker reads what its server had some batches ago, and starts from other numbers: means are compared."""
    for kind, margin in (("async_sgd", 0.03), ("geo", 0.03)):
        job = saved(kind)
        ours = job.train()
        support.run(python, MODELS, "cluster", kind, job.folder, cwd=job.folder)
        theirs = [float(line.split()[0]) for line in support.read(job.folder + "/losses").splitlines()]
        if len(theirs) != len(ours):
            support.fail("%s: Paddle printed %d batches, not %d" % (kind, len(theirs), len(ours)))
        here, there = mean(ours[-100:]), mean(theirs[-100:])
        print("%s: loss of the last 100 batches: %.4f here, %.4f in Paddle" % (kind, here, there))
        if not here < there + margin:
            support.fail("%s learns less than in Paddle" % kind)


def rows_of(folder):
    """The weights of each id, in text files of the_one_ps with Adam."""
    rows = {}
    for name in os.listdir(folder):
        with gzip.open(folder + "/" + name, "rt") as file:
            for line in file:
                numbers = line.split()
                dim = (len(numbers) - 10) // 3
                rows[int(numbers[0])] = [float(n) for n in numbers[6:7] + numbers[11:11 + dim - 1]]
    return rows


def check_tables(saved, python):
    """Rows of a server start a job here, and those of a job a server."""
    job = saved("async")
    support.run(python, MODELS, "cluster", "async", job.folder, cwd=job.folder)
    theirs = rows_of(job.folder + "/tables/000")
    first = mean(job.train()[:10])
    start = 'program.server_dir="%s/tables"' % job.folder
    went_on = job.train(start, 'program.save_server_dir="%s/ours"' % job.folder)
    if not mean(went_on[:10]) < first - 0.1:
        support.fail("a job does not start from a server's rows: %r" % went_on)
    ours = rows_of(job.folder + "/ours/000")
    if ours.keys() != theirs.keys() or ours == theirs or len(os.listdir(job.folder + "/ours/000")) != 1000:
        support.fail("rows for servers are not those of the job")
    support.run(python, MODELS, "reload", "async", job.folder, cwd=job.folder)
    again = rows_of(job.folder + "/again/000")
    if again.keys() != ours.keys():
        support.fail("a server has %d rows of %d" % (len(again), len(ours)))
    for key, row in ours.items():
        if any(support.differs(a, b, 1e-5) for a, b in zip(again[key], row)) or len(again[key]) != 8:
            support.fail("a server reads %r as %r" % (row, again[key]))


def main():
    bin_dir, part = sys.argv[1:]
    python = support.peer("PADDLE_PYTHON", "paddle")
    with tempfile.TemporaryDirectory() as top:
        saved = lambda kind: Saved(bin_dir, python, kind, top)
        if part == "jobs":
            check_jobs(saved)
        elif part == "tables":
            check_tables(saved, python)
        else:
            check_cluster(saved, python)


if __name__ == "__main__":
    main()
