"""Jobs that fleet wrote for workers of a parameter server, saved by scripts/export_from_paddle.py and run here.

    fleet_test.py BIN_DIR jobs|cluster|tables|counts|rules    PADDLE_PYTHON names a Python with Paddle; exit code 77: there is none

jobs: every mode trains, and what is not supported is refused by name. cluster: the loss of Paddle's own server and
worker over the same lines. tables: rows that a server saved start a job, and the other way round. counts: the same of
rows that count shows and clicks, exactly. rules: what rows learn of a batch depends on its size and on how often it has
an id, as on a server.
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
# Kinds with a SparseAccessor of the strategy's own. Rows of the first have rules of ours, others those of servers.
RULES = ("plain", "naive", "adagrad", "linear", "linear_adagrad")


def write_lines(path, lines=LINES):
    r = random.Random(3)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(lines):
            ids = [r.randrange(200) for _ in range(r.randrange(1, 4))]
            x = [r.gauss(0, 1) for _ in range(3)]
            score = x[0] + sum(1 if i % 2 else -1 for i in ids)
            file.write("1 %d 3 %.3f %.3f %.3f %d %s\n" % (r.random() < 1 / (1 + math.exp(-score)), *x, len(ids),
                                                         " ".join(map(str, ids))))


class Saved:
    def __init__(self, bin_dir, python, kind, top):
        self.bin, self.folder = bin_dir, top + "/" + kind
        os.makedirs(self.folder)
        write_lines(self.folder + "/lines")
        self.said = support.run(python, MODELS, "save", kind.split("/")[0], self.folder, cwd=self.folder)

    def job(self):
        return support.read(self.folder + "/job/job.prototxt")

    def train(self, *settings):
        """The losses of all batches."""
        # Of ranks, others' updates come between those of one: such a job has no update_mode.
        serial = () if "dist {" in self.job() else ("update_mode=SERIAL",)
        flags = [word for setting in serial + settings for word in ("--set", setting)]
        support.run(self.bin + "/trainer", "--trainer_desc=" + self.folder + "/job/job.prototxt",
                    "--output_dir=" + self.folder + "/out", *flags)
        return [line["mean_1.tmp_0"] for line in support.metrics(self.folder + "/out") if "mean_1.tmp_0" in line]


def mean(values):
    return sum(values) / len(values)


def check_refusals(saved):
    for kind, parts in (("accessor", ("accessor CtrDoubleAccessor; use CtrCommonAccessor or SparseAccessor",)),
                        ("pslib_counts", ("embedx_dim 8, and the program looks up rows of 8",)),
                        ("clicks", ("entry count_filter_entry:3",)),
                        ("server", ("as fleet leaves it to a server", "in the process of a trainer")),
                        ("unmade", ("have no value that training could start from", "fc_0.w_0"))):
        said = saved(kind).said
        for part in ("refused: ",) + parts:
            if part not in said:
                support.fail("%s: no %r in\n%s" % (kind, part, said[-3000:]))


def check_jobs(saved):
    for kind in ("async", "async_embedding", "async_shared", "async_sgd", "sync", "geo", "distributed", "transpiled",
                 "collective", "pslib", "huge", "counted", "hidden") + RULES:
        job = saved(kind)
        losses = job.train()
        least = 0.02 if kind in RULES else 0.08  # of small rates
        if len(losses) != LINES // 40 or not mean(losses[-50:]) < mean(losses[:20]) - least:
            support.fail("%s does not learn: %r" % (kind, losses))
        if kind == "huge":
            continue  # as a matrix, its rows would fill the machine
        if not os.path.exists(job.folder + "/out/paddle/model.pdmodel"):
            support.fail("%s: no model for Paddle" % kind)
        bounds = "weight_bounds: -10 weight_bounds: 10"
        of_servers = kind.startswith("async") or kind in ("sync", "counted", "hidden") + RULES[1:]
        if (bounds in job.job()) != of_servers:
            support.fail("%s has other bounds:\n%s" % (kind, job.job()))
        if ("DownpourLiteWorker" in job.job()) != (kind == "plain" or of_servers and kind != "sync"):
            support.fail("%s has another worker:\n%s" % (kind, job.job()))
        if ("dist { update: GEO geo_steps: 100 }" in job.job()) != (kind == "geo"):
            support.fail("%s has another dist:\n%s" % (kind, job.job()))
    check_refusals(saved)


def check_cluster(saved, python):
    """Paddle's worker reads what its server had some batches ago, and starts from other numbers: means are compared."""
    for kind, margin in (("async_sgd", 0.03), ("geo", 0.03), ("counted", 0.03), ("hidden", 0.03)):
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


def numbers_of(folder):
    """All numbers of each id but its slot."""
    rows = {}
    for name in os.listdir(folder):
        with gzip.open(folder + "/" + name, "rt") as file:
            for line in file:
                numbers = line.split()
                rows[int(numbers[0])] = [float(n) for n in numbers[2:]]
    return rows


def check_first_batch(saved, python, kind, lines=40):
    """Before a worker of Paddle's reads what its server has made of its pushes, it trains as we do."""
    job = saved(kind + "/first")
    write_lines(job.folder + "/lines", lines)
    support.run(python, MODELS, "cluster", kind, job.folder, cwd=job.folder)
    job.train('program.save_server_dir="%s/ours"' % job.folder)
    theirs, ours = numbers_of(job.folder + "/tables/000"), numbers_of(job.folder + "/ours/000")
    if not theirs or theirs.keys() != ours.keys():
        support.fail("%s: a batch has %d rows in Paddle and %d here" % (kind, len(theirs), len(ours)))
    for key, row in theirs.items():
        # Counts, embed and what there is of its state; embedx starts at random.
        known = 5 if kind == "naive" else 6
        if len(row) != len(ours[key]) or any(support.differs(a, b, 1e-5) for a, b in zip(ours[key][:known], row)):
            support.fail("%s: row %d is %r in Paddle and %r here" % (kind, key, row, ours[key]))


def check_model_and_rows(job, bin_dir, python, kind, ours):
    """The job's model scores its line as Paddle does, and a server reads the rows that it saved."""
    support.run(python, MODELS, "predict", kind, job.folder, cwd=job.folder)
    support.run(bin_dir + "/predictor", "--model_dir=" + job.folder + "/out/paddle",
                "--input=" + job.folder + "/line", "--output=" + job.folder + "/ours.score")
    scores = [float(support.read(job.folder + name)) for name in ("/score", "/ours.score")]
    if support.differs(scores[1], scores[0], 1e-5):
        support.fail("%s: the model's score is %r in Paddle and %r here" % (kind, *scores))
    support.run(python, MODELS, "reload", kind, job.folder, cwd=job.folder)
    again = numbers_of(job.folder + "/again/000")
    for key, row in ours.items():
        if len(row) != len(again.get(key, ())) or any(support.differs(a, b, 1e-5) for a, b in zip(again[key], row)):
            support.fail("%s: a server reads %r as %r" % (kind, row, again.get(key)))


def check_counts(saved, bin_dir, python):
    """Rows with counts go from a server to a job and back: what was counted is exact, what was not trained as it was."""
    for kind in ("counted", "hidden"):
        job = saved(kind)
        check_first_batch(saved, python, kind)
        counts = {}
        for line in support.read(job.folder + "/lines").splitlines():
            words = line.split()
            click = int(words[1])
            for key in map(int, words[7:]):
                shows, clicks = counts.get(key, (0, 0))
                counts[key] = (shows + 1 + click, clicks + click)
        support.run(python, MODELS, "cluster", kind, job.folder, cwd=job.folder)
        theirs = numbers_of(job.folder + "/tables/000")
        if {key: tuple(row[2:4]) for key, row in theirs.items()} != counts:
            support.fail("%s: a server counts otherwise than the lines say" % kind)
        save = 'program.save_server_dir="%s/ours"' % job.folder
        job.train(save)
        if {key: tuple(row[2:4]) for key, row in numbers_of(job.folder + "/ours/000").items()} != counts:
            support.fail("%s: rows here count otherwise than the lines say" % kind)
        # Started from the server's rows and trained on one line: all rows but those of its ids are as they were.
        with open(job.folder + "/line", "w", encoding="utf-8") as file:
            file.write("1 1 3 0 0 0 2 7 8\n")
        job.train('program.server_dir="%s/tables"' % job.folder, save, 'filelist="%s/line"' % job.folder)
        ours = numbers_of(job.folder + "/ours/000")
        for key, row in theirs.items():
            wanted = row[2:4] if key not in (7, 8) else [row[2] + 2, row[3] + 1]
            if ours[key][2:4] != wanted or (key not in (7, 8) and ours[key] != row):
                support.fail("%s: row %d of a server, %r, came to %r" % (kind, key, row, ours[key]))
        check_model_and_rows(job, bin_dir, python, kind, ours)


def check_rules(saved, bin_dir, python):
    """The step of a row is that of the examples that there were: in a short batch, and for an id that a batch has often.
    By our own rules, a batch of 9 of 40 made steps more than four times too long."""
    for kind in RULES[1:] + ("async",):
        check_first_batch(saved, python, kind, 9)
    check_rows_of_one(saved, bin_dir, python)


def check_rows_of_one(saved, bin_dir, python):
    """Rows of linear parts go to a server and back, also with the NaN that it has for a state of no weights."""
    for kind in ("linear", "linear_adagrad"):
        job = saved(kind + "/back")
        support.run(python, MODELS, "cluster", kind, job.folder, cwd=job.folder)
        theirs = numbers_of(job.folder + "/tables/000")
        with open(job.folder + "/line", "w", encoding="utf-8") as file:
            file.write("1 1 3 0 0 0 2 7 8\n")
        job.train('program.server_dir="%s/tables"' % job.folder, 'program.save_server_dir="%s/ours"' % job.folder,
                  'filelist="%s/line"' % job.folder)
        ours = numbers_of(job.folder + "/ours/000")
        for key, row in theirs.items():
            wrong = [i for i, number in enumerate(row) if not math.isnan(number) and ours[key][i] != number]
            if len(row) != len(ours[key]) or (wrong and key not in (7, 8)):
                support.fail("%s: row %d of a server, %r, came to %r" % (kind, key, row, ours[key]))
        check_model_and_rows(job, bin_dir, python, kind, ours)


def main():
    bin_dir, part = sys.argv[1:]
    python = support.peer("PADDLE_PYTHON", "paddle")
    with tempfile.TemporaryDirectory() as top:
        saved = lambda kind: Saved(bin_dir, python, kind, top)
        if part == "jobs":
            check_jobs(saved)
        elif part == "tables":
            check_tables(saved, python)
        elif part == "counts":
            check_counts(saved, bin_dir, python)
        elif part == "rules":
            check_rules(saved, bin_dir, python)
        else:
            check_cluster(saved, python)


if __name__ == "__main__":
    main()
