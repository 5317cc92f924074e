#!/usr/bin/env python3
"""Trains a Paddle program of 1,445 operators over 233 sparse slots in Paddle and here, in turn, and prints both rates.

    PADDLE_PYTHON=... bench/e2e/seed_size.py --peers ../shared/bench [--lines 20480] [--reps 2] [--threads 1]

The program, its parameters and its data are those of seed_size.py in PEERS, saved by scripts/export_from_paddle.py when
Paddle begins to train. Rates are examples a second of processor time for one thread (a busy machine changes neither
side) and of wall time for several; ours counts the whole process, loading included, Paddle's its training passes alone. Paddle leaves
files where it runs, so it runs in a temporary folder.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Runs in Paddle's Python: seed_size.py as it is, but for its clock and the job that is saved before it trains.
PEER = """
import importlib.util, sys, time
sys.path.insert(0, sys.argv[1])
import export_from_paddle
from paddle import static
spec = importlib.util.spec_from_file_location("seed_size", sys.argv[2])
seed_size = importlib.util.module_from_spec(spec)
spec.loader.exec_module(seed_size)
data, job, threads = sys.argv[3], sys.argv[4], int(sys.argv[5])
if threads == 1:
    seed_size.time.time = time.process_time
train = static.Executor.train_from_dataset
def saved_first(executor, program, dataset, **options):
    static.Executor.train_from_dataset = train
    export_from_paddle.save_job(job, executor, program, static.default_startup_program(), dataset)
    return train(executor, program, dataset, **options)
static.Executor.train_from_dataset = saved_first
seed_size.train(data, threads)
"""


def run(command, cwd, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    done = subprocess.run(command, env={**env, "OMP_NUM_THREADS": "1", **more}, cwd=cwd, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit("%s\nexit %d\n%s" % (" ".join(command), done.returncode, done.stderr[-2000:]))
    return done.stdout


def paddle_rates(args, folder):
    """The passes of one run; leaves FOLDER/job."""
    text = run([os.environ["PADDLE_PYTHON"], "-c", PEER, ROOT + "/scripts", args.peers + "/seed_size.py", folder + "/data",
                folder + "/job", str(args.threads)], folder, MKL_DEBUG_CPU_TYPE="5")
    line = [line for line in text.splitlines() if line.startswith("ops ")][0]
    print("Paddle: " + line, flush=True)
    return [float(rate) for rate in line.split("ex/s ")[1].split()]


def our_rate(args, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run([args.trainer, "--trainer_desc=" + folder + "/job/job.prototxt", "--output_dir=" + folder + "/out",
         "--set", "epochs=%d" % args.epochs, "--set", "thread_num=%d" % args.threads, "--set", "checkpoint.every_epochs=0"], folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(folder + "/out/run.json", encoding="utf-8") as file:
        report = json.load(file)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rate = report["examples"] / seconds if args.threads == 1 else report["examples_per_second"]
    print("Millrace: %.0f examples/s" % rate, flush=True)
    return rate


def shown(rates):
    return "%.0f [%.0f-%.0f], n = %d" % (statistics.median(rates), min(rates), max(rates), len(rates))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--lines", type=int, default=20480)
    parser.add_argument("--reps", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trainer", default=ROOT + "/build/release/bin/trainer")
    args = parser.parse_args()
    args.peers, args.trainer = os.path.abspath(args.peers), os.path.abspath(args.trainer)
    if not os.environ.get("PADDLE_PYTHON"):
        sys.exit("PADDLE_PYTHON must name a Python with Paddle")
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        run([os.environ["PADDLE_PYTHON"], args.peers + "/seed_size.py", "gen", folder + "/data", str(args.lines)], folder)
        for _ in range(args.reps):
            theirs += paddle_rates(args, folder)
            ours.append(our_rate(args, folder))
    print("\n| system | examples/s: median [min-max] | Millrace is faster by |\n|---|---|---|")
    print("| Millrace | %s | 1 |" % shown(ours))
    print("| Paddle | %s | %.1f |" % (shown(theirs), statistics.median(ours) / statistics.median(theirs)))


if __name__ == "__main__":
    main()
