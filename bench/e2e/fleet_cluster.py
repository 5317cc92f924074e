#!/usr/bin/env python3
"""Loss curves of one job in a cluster of Paddle's, a server and a worker, and here: in one process, and on two ranks.

    fleet_cluster.py BIN_DIR [LINES]    PADDLE_PYTHON names a Python with Paddle

The job is kind "naive" of tests/paddle/fleet_models.py: rows and parameters learn by sgd, whose updates add up however
many batches of gradients Paddle's worker sends as one. Three seeds of first parameters; a part of a curve is the mean
loss of an eighth of the lines, before they were trained: the same lines in each system, whichever rank had them. Lines
are in files, of which each rank takes the next one. Paddle's worker gets a batch every PACE seconds: as fast as it can,
it trains further batches before its server has the last ones, and learns from these later.
Rows go both ways: two ranks start from what Paddle's server saved, and its server from what they saved.
"""

import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "paddle"))

import fleet_models  # noqa: E402
import fleet_test  # noqa: E402
import support  # noqa: E402

PARTS = 8
FILES = 4 * PARTS
SEEDS = (5, 6, 7)
PACE = 0.05


class Job:
    def __init__(self, bin_dir, python, top, seed, lines):
        self.bin, self.python, self.folder, self.seed = bin_dir, python, "%s/%d" % (top, seed), seed
        os.mkdir(self.folder)
        fleet_test.write_lines(self.folder + "/lines", lines)
        text = support.read(self.folder + "/lines").splitlines(True)
        self.part_of = {tuple(map(float, line.split()[3:6])): i * PARTS // lines for i, line in enumerate(text)}
        if len(self.part_of) < lines:
            support.fail("two of %d lines have the same floats, so a dump does not tell which one it is of" % lines)
        self.files = [support.write("%s/part-%02d" % (self.folder, i),
                                    "".join(text[i * lines // FILES:(i + 1) * lines // FILES])) for i in range(FILES)]
        self.in_paddle("save")

    def in_paddle(self, what, **variables):
        subprocess.run([self.python, fleet_test.MODELS, what, "naive", self.folder], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=dict(os.environ, FLEET_SEED=str(self.seed), **variables))

    def train(self, ranks, files, *settings):
        command = [self.bin + "/trainer", "--trainer_desc=" + self.folder + "/job/job.prototxt",
                   "--output_dir=%s/out%d" % (self.folder, ranks)]
        for setting in ("filelist=[%s]" % ", ".join('"%s"' % file for file in files),) + settings:
            command += ["--set", setting]
        support.run(*support.on_ranks(ranks, command))

    def theirs(self):
        pause = "awk '{ print } NR %% %d == 0 { fflush(); system(\"sleep %g\") }'" % (fleet_models.BATCH, PACE)
        self.in_paddle("cluster", FLEET_PIPE=pause)
        losses = [float(line.split()[0]) for line in support.read(self.folder + "/losses").splitlines()]
        return means((i * PARTS // len(losses), loss) for i, loss in enumerate(losses))

    def ours(self, ranks):
        dump = "%s/dump%d" % (self.folder, ranks)
        self.train(ranks, self.files, 'dump_fields=["label", "dense", "fc_1.tmp_2"]', 'dump_fields_path="%s"' % dump,
                   "dump_file_num=1")
        return means(self.loss_of(line) for name in os.listdir(dump)
                     for line in support.read(os.path.join(dump, name)).splitlines())

    def loss_of(self, line):
        """Of a line of a dump its part of the curve, and how unlikely its label was said to be."""
        label, dense, scores = (field.split(":")[2] for field in line.split("\t")[1:4])
        loss = -math.log(max(float(scores.split(",")[int(label)]), 1e-7))
        return self.part_of[tuple(round(float(x), 3) for x in dense.split(","))], loss


def means(losses):
    """The mean of each part, from pairs of part and loss."""
    parts = [[] for _ in range(PARTS)]
    for part, loss in losses:
        parts[part].append(loss)
    return [sum(part) / len(part) for part in parts]


def show(name, curve):
    print("%-22s" % name, "  ".join("%.4f" % loss for loss in curve), flush=True)


def check_rows(job):
    """Those of the server start two ranks, which train one line more; their rows start a server."""
    support.write(job.folder + "/line", "1 1 3 0 0 0 2 7 8\n")
    job.train(2, [job.folder + "/line"], 'program.server_dir="%s/tables"' % job.folder,
              'program.save_server_dir="%s/ours"' % job.folder)
    theirs, ours = (fleet_test.numbers_of(job.folder + folder) for folder in ("/tables/000", "/ours/000"))
    changed = [key for key in theirs if ours[key][4:] != theirs[key][4:]]
    if theirs.keys() != ours.keys() or sorted(changed) != [7, 8]:
        support.fail("of %d rows of a server ranks have %d, and changed %r" % (len(theirs), len(ours), changed))
    job.in_paddle("reload")
    again = fleet_test.numbers_of(job.folder + "/again/000")
    for key, row in ours.items():
        if any(support.differs(a, b, 1e-5) for a, b in zip(again[key], row)):
            support.fail("a server reads %r as %r" % (row, again[key]))
    print("%d rows of a server started two ranks, and theirs a server, as they were" % len(theirs))


def main():
    bin_dir = os.path.abspath(sys.argv[1])
    lines = int(sys.argv[2]) if len(sys.argv) > 2 else 16000
    python = support.peer("PADDLE_PYTHON", "paddle")
    with tempfile.TemporaryDirectory() as top:
        jobs = [Job(bin_dir, python, top, seed, lines) for seed in SEEDS]
        curves = {}
        for job in jobs:
            for name, train in (("Paddle", job.theirs), ("one process", lambda: job.ours(0)),
                                ("two ranks", lambda: job.ours(2))):
                curves.setdefault(name, []).append(train())
                show("%s, seed %d" % (name, job.seed), curves[name][-1])
        for name, of_seeds in curves.items():
            show("%s, spread" % name, [max(losses) - min(losses) for losses in zip(*of_seeds)])
        for name in ("one process", "two ranks"):
            show("%s - Paddle" % name, [(sum(ours) - sum(theirs)) / len(SEEDS)
                                        for ours, theirs in zip(zip(*curves[name]), zip(*curves["Paddle"]))])
        check_rows(jobs[0])


if __name__ == "__main__":
    main()
