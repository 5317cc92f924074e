#!/usr/bin/env python3
"""Measures costs at growing sizes, fits their exponents, and prints them with the bounds beside them.

    bench/growth/growth.py [--bin build/release/bin] [--curve start_by_slots] [--sizes 1000,10000] [--rounds 1]

A curve is a function of a size that returns costs by name, and a line in CURVES. The exponent b is that of
cost = a * size^b, fitted to all sizes together (least squares of the logarithms); 1 is linear. The last column is the cost of
the largest size divided by the size. A curve beyond a bound is marked, and the exit code is 1. Times are processor time of the
user, which other work on the machine touches less than the clock on the wall.
"""

import argparse
import dataclasses
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def fit(points):
    """The a and b of cost = a * size^b that are nearest to points, pairs of a size and a cost."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points]
    x = sum(p[0] for p in logs) / len(logs)
    y = sum(p[1] for p in logs) / len(logs)
    spread = sum((p[0] - x) ** 2 for p in logs)
    if spread == 0:
        raise ValueError("an exponent needs two sizes that differ")
    b = sum((p[0] - x) * (p[1] - y) for p in logs) / spread
    return math.exp(y - b * x), b


def run(command):
    """Runs a program that must succeed: its user seconds and its peak of memory in bytes."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            sys.exit("%s\nexit %d\n%s" % (" ".join(command), process.returncode, output.read().decode()[-2000:]))
    return usage.ru_utime, usage.ru_maxrss * 1024


def slot_job(slots, folder):
    """A job of one batch with this many slots, which share a table, in FOLDER/job.prototxt."""
    ranges = ['"S%d_0..S%d_%d"' % (i, i, min(50000, slots - i * 50000) - 1) for i in range((slots + 49999) // 50000)]
    with open(folder + "/data.txt", "w", encoding="utf-8") as file:
        for row in range(4):
            file.write("1 %d " % (row % 2) + " ".join(["1 %d" % row] * slots) + "\n")
    with open(folder + "/job.prototxt", "w", encoding="utf-8") as file:
        file.write("""filelist: "%s/data.txt"
data_desc {
  batch_size: 4
  multi_slot_desc {
    slots { name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
%s  }
}
dataset { class_name: "QueueDataset" }
model {
  table { name: "rows" dim: 8 key: SLOT_AND_ID optimizer { adagrad { lr: 0.1 } } }
  layer { name: "vectors" embedding { slots: [%s] table: "rows" } }
  layer { name: "logit" fc { in: "vectors" units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "logit" label: "label" }
  optimizer { adagrad { lr: 0.1 } }
}
""" % (folder, "".join('    slots { name: %s type: "uint64" is_used: true }\n' % r for r in ranges), ", ".join(ranges)))


def start_by_slots(slots, bin_folder, *flags):
    """A whole run of one batch: a job's start is all but a little of it."""
    with tempfile.TemporaryDirectory() as folder:
        slot_job(slots, folder)
        command = [bin_folder + "/trainer", "--trainer_desc=" + folder + "/job.prototxt", *flags]
        seconds, memory = run(command + ["--set", "output.save_inference_model=false"])
    return {"user s": seconds, "peak bytes": memory}


def start_by_slots_unfused(slots, bin_folder):
    return start_by_slots(slots, bin_folder, "--set", "fuse=false")


def click_log(rows, folder, bin_folder, *flags):
    """Files FOLDER/clicks/train/part-*; what it cost."""
    return run([bin_folder + "/clickgen", "--output_dir=" + folder + "/clicks", "--rows=%d" % rows, *flags])


def train(folder, bin_folder, slots, model, *flags):
    """Trains a model on the click log in FOLDER, one worker, no export, no checkpoint but where flags ask for one."""
    with open(folder + "/job.prototxt", "w", encoding="utf-8") as file:
        file.write("""filelist: "%s/clicks/train/part-*"
data_desc { batch_size: 256 multi_slot_desc { %s } }
dataset { class_name: "QueueDataset" }
model { %s }
""" % (folder, slots, model))
    command = [bin_folder + "/trainer", "--trainer_desc=" + folder + "/job.prototxt", "--output_dir=" + folder + "/out"]
    for setting in ("output.save_inference_model=false", "checkpoint.every_epochs=0", *flags):
        command += [setting] if setting.startswith("--") else ["--set", setting]
    return run(command)


LABEL = 'slots { name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }'
CLICKS = LABEL + """ slots { name: "dense" type: "float" is_used: true is_dense: true shape: [-1, 13] }
  slots { name: "C1..C26" type: "uint64" is_used: true }"""
DEEP = """table { name: "deep" dim: 16 key: SLOT_AND_ID optimizer { adagrad { lr: 0.05 } } }
  layer { name: "vectors" embedding { slots: "C1..C26" table: "deep" pool: AVERAGE } }
  layer { name: "hidden" fc { in: ["vectors", "dense"] units: [%s] act: RELU } }
  layer { name: "logit" fc { in: "hidden" units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "logit" label: "label" }
  optimizer { %s }"""


def row_lock_by_rows(rows, bin_folder):
    """Two workers that lock rows, and two that do not."""
    with tempfile.TemporaryDirectory() as folder:
        click_log(rows, folder, bin_folder, "--parts=4")
        costs = {}
        for mode in ("HOGWILD", "ROW_LOCK"):
            model = DEEP % ("64, 32", "adagrad { lr: 0.01 }")
            costs[mode + " s"] = train(folder, bin_folder, CLICKS, model, "thread_num=2", "update_mode=" + mode)[0]
    return costs


def lamb_by_rows(rows, bin_folder):
    """Batches of 32, so that the updates of 400,000 weights weigh."""
    with tempfile.TemporaryDirectory() as folder:
        click_log(rows, folder, bin_folder)
        model = DEEP % ("400, 400, 400", "lamb { lr: 0.001 weight_decay: 0.01 }")
        return {"user s": train(folder, bin_folder, CLICKS, model, "data_desc.batch_size=32")[0]}


def checkpoint_by_files(files, bin_folder):
    """One checkpoint of a job with so many input files of a line: a job that writes forty, less one that writes none."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder + "/clicks/train")
        for i in range(files):
            with open(folder + "/clicks/train/part-%06d" % i, "w", encoding="utf-8") as file:
                file.write("1 %d 1 0.5\n" % (i % 2))
        slots = LABEL + ' slots { name: "dense" type: "float" is_used: true is_dense: true shape: [-1, 1] }'
        model = """layer { name: "y" fc { in: "dense" units: 1 } }
          loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" } optimizer { sgd { lr: 0.01 } }"""
        batch = "data_desc.batch_size=%d" % max(1, files // 40)
        without = train(folder, bin_folder, slots, model, batch)[0]
        with_forty = train(folder, bin_folder, slots, model, batch, "checkpoint.every_steps=1")[0]
    return {"user s": (with_forty - without) / 40}


def table_by_rows(rows, bin_folder):
    """A table of 32 floats a row that is written once, then read. The time of saving is a difference of two runs, too small
    for an exponent."""
    with tempfile.TemporaryDirectory() as folder:
        click_log(rows, folder, bin_folder, "--dense=0", "--slots=1", "--fm_slots=0", "--many_valued=0", "--zipf=0",
                  "--vocabulary=100000000000", "--ids=hash64", "--missing=0")
        slots = LABEL + ' slots { name: "C1" type: "uint64" is_used: true }'
        model = """table { name: "t" dim: 16 optimizer { adagrad { lr: 0.1 } } }
          layer { name: "v" embedding { slots: "C1" table: "t" } } layer { name: "y" fc { in: "v" units: 1 } }
          loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" } optimizer { sgd { lr: 0.01 } }"""
        without = train(folder, bin_folder, slots, model)[0]
        written = train(folder, bin_folder, slots, model, "checkpoint.every_epochs=1")[0]
        read = train(folder, bin_folder, slots, model, "--resume=auto")[0]
    return {"save s": written - without, "load s": read}


def gauc_by_rows(rows, bin_folder):
    """What GAUC takes more than a metric of a few sums."""
    with tempfile.TemporaryDirectory() as folder:
        click_log(rows, folder, bin_folder, "--dense=1", "--slots=1", "--fm_slots=0", "--many_valued=0", "--zipf=0.5",
                  "--vocabulary=2091")
        slots = LABEL + """ slots { name: "dense" type: "float" is_used: true is_dense: true shape: [-1, 1] }
          slots { name: "C1" type: "uint64" is_used: true }"""
        model = """layer { name: "y" fc { in: "dense" units: 1 } }
          loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" } optimizer { sgd { lr: 0.01 } }
          metric { kind: %s }"""
        grouped = train(folder, bin_folder, slots, model % 'GAUC group: "C1"')
        plain = train(folder, bin_folder, slots, model % "LOGLOSS")
    return {"user s": grouped[0] - plain[0], "peak bytes": grouped[1] - plain[1]}


def click_log_by_rows(rows, bin_folder):
    with tempfile.TemporaryDirectory() as folder:
        return {"user s": click_log(rows, folder, bin_folder, "--threads=1")[0]}


@dataclasses.dataclass
class Curve:
    measure: object  # function of a size and the folder of the programs; returns costs by name
    sizes: tuple
    exponents: dict  # the most that the exponent of a cost may be
    shares: dict     # the most that a cost may be for each unit of the largest size


CURVES = {
    "start_by_slots": Curve(start_by_slots, (1000, 10000, 20000, 40000, 100000), {"user s": 1.05, "peak bytes": 1.05},
                            {"user s": 1e-4, "peak bytes": 1e4}),
    "start_by_slots_unfused": Curve(start_by_slots_unfused, (1000, 10000, 20000, 40000, 100000),
                                    {"user s": 1.05, "peak bytes": 1.05}, {"user s": 1e-4, "peak bytes": 1e4}),
    "row_lock_by_rows": Curve(row_lock_by_rows, (100000, 200000, 400000), {"HOGWILD s": 1.05, "ROW_LOCK s": 1.05},
                              {"ROW_LOCK s": 6e-6}),
    "lamb_by_rows": Curve(lamb_by_rows, (25000, 50000, 100000), {"user s": 1.05}, {"user s": 1e-4}),
    "checkpoint_by_files": Curve(checkpoint_by_files, (5000, 10000, 20000), {"user s": 1.05}, {"user s": 2e-6}),
    "table_by_rows": Curve(table_by_rows, (500000, 1000000, 2000000), {"load s": 1.05},
                           {"save s": 3e-7, "load s": 1e-7}),
    "gauc_by_rows": Curve(gauc_by_rows, (1000000, 2000000, 4000000), {"peak bytes": 1.05}, {"peak bytes": 18}),
    "click_log_by_rows": Curve(click_log_by_rows, (250000, 500000, 1000000), {"user s": 1.05}, {"user s": 1.5e-6}),
}


def judge(curve, points):
    """The exponent and the share of the largest size for each cost, and whether both are within their bounds."""
    judged = {}
    for cost in points[0][1]:
        b = fit([(size, costs[cost]) for size, costs in points])[1]
        size, costs = points[-1]
        share = costs[cost] / size
        within = b <= curve.exponents.get(cost, math.inf) and share <= curve.shares.get(cost, math.inf)
        judged[cost] = (b, share, within)
    return judged


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT + "/build/release/bin", help="folder of the programs")
    parser.add_argument("--curve", choices=CURVES, help="one curve; all without it")
    parser.add_argument("--sizes", help="other sizes, ascending, with commas between")
    parser.add_argument("--rounds", type=int, default=1, help="of each cost the least of so many counts")
    options = parser.parse_args()
    all_within = True
    for name in [options.curve] if options.curve else CURVES:
        curve = CURVES[name]
        sizes = [int(size) for size in options.sizes.split(",")] if options.sizes else curve.sizes
        print("%s (load %.2f)" % (name, os.getloadavg()[0]), flush=True)
        points = []
        for size in sizes:
            rounds = [curve.measure(size, options.bin) for _ in range(options.rounds)]
            points.append((size, {cost: min(costs[cost] for costs in rounds) for cost in rounds[0]}))
            print("  %10d  " % size + "  ".join("%s %.4g" % item for item in points[-1][1].items()), flush=True)
        for cost, (b, share, within) in judge(curve, points).items():
            all_within = all_within and within
            print("  %-10s exponent %.2f (bound %s), %.3g for each (bound %s)%s" % (
                cost, b, curve.exponents.get(cost, "none"), share, curve.shares.get(cost, "none"),
                "" if within else "  BEYOND"))
    sys.exit(0 if all_within else 1)


if __name__ == "__main__":
    main()
