#!/usr/bin/env python3
"""How long four ranks need to train again when one of them is killed (Open MPI 5 with ULFM), by the size of their table.

    lost_rank.py BIN_DIR [IDS ...]    ULFM_PYTHON names a Python with Open MPI 5 (scripts/peers ulfm)

Each size: one process trains a table of so many rows of 64 floats, each with as much state; four ranks go on from its
checkpoint, without another one; one is killed with SIGKILL. `recovery_seconds` of run.json is the time from the loss until
the others train. Beside it stands 1 s and the rows of the lost rank at 1 GB/s. Three rounds; exit code 1: the median of a
size is longer.
"""

import glob
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "growth"))

import stop  # noqa: E402

RANKS = 4
IDS_A_LINE = 100
ROUNDS = 3


def until(running, is_so, what):
    end = time.monotonic() + 300
    while not is_so():
        if running.poll() is not None or time.monotonic() > end:
            sys.exit("the run did not come to %s, exit code %s" % (what, running.poll()))
        time.sleep(0.02)


def ranks_below(pid):
    """Processes of the trainer that are mpirun's."""
    found = []
    for child in open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii").read().split():
        with open("/proc/%s/comm" % child, encoding="utf-8") as file:
            found += [int(child)] if file.read().strip() == "trainer" else ranks_below(int(child))
    return found


def recover(bin_dir, mpirun, ids, folder):
    """(bytes of the table in the checkpoint, seconds until the ranks that are left train)"""
    files = stop.small_lines(folder, ids // IDS_A_LINE // 8, IDS_A_LINE, files=8)
    job = stop.one_slot_job(folder, files, "", extra="fetch_config { fetch_var_names: \"loss\" print_period: 1 }\n")
    out = folder + "/out"
    train = [bin_dir + "/trainer", "--trainer_desc=" + job, "--output_dir=" + out]
    subprocess.run(train, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    size = sum(os.path.getsize(name) for name in glob.glob(out + "/checkpoints/*/**", recursive=True) if os.path.isfile(name))
    with open(folder + "/log", "w+b") as log:
        running = subprocess.Popen([mpirun, "--with-ft", "ulfm", "--oversubscribe", "-n", str(RANKS), "--bind-to", "none", *train,
                                    "--resume=auto", "--set", "epochs=100000", "--set", "checkpoint={every_epochs:100000}"],
                                   stdout=log, stderr=log,
                                   env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                            LD_LIBRARY_PATH=os.path.dirname(os.path.dirname(mpirun)) + "/lib"))

        def printed(after):
            with open(log.name, "rb") as file:
                text = file.read()
            return after in text and b"batch: [" in text[text.rfind(after):]

        try:
            until(running, lambda: printed(b"going on from"), "the training of %d ranks" % RANKS)
            time.sleep(1)
            os.kill(ranks_below(running.pid)[2], signal.SIGKILL)
            until(running, lambda: printed(b"%d ranks go on" % (RANKS - 1)), "the training of those that are left")
            running.send_signal(signal.SIGUSR1)  # with time for a checkpoint
            running.wait(120)
        finally:
            running.kill()
            running.wait()
    with open(out + "/run.json", encoding="utf-8") as file:
        dist = json.load(file)["dist"]
    if dist["restarts"] != 1:
        sys.exit("the ranks went on %s times" % dist["restarts"])
    return size, dist["recovery_seconds"]


def main():
    bin_dir = os.path.abspath(sys.argv[1])
    python = os.environ.get("ULFM_PYTHON") or sys.exit("ULFM_PYTHON names no Python with Open MPI 5")
    mpirun = os.path.join(os.path.dirname(os.path.abspath(python)), "mpirun")
    is_late = False
    for ids in [int(word) for word in sys.argv[2:]] or [100000, 1000000, 2000000]:
        all_seconds = []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                size, seconds = recover(bin_dir, mpirun, ids, folder)
            all_seconds.append(seconds)
        bound = 1 + size / RANKS / 1e9
        is_late = is_late or statistics.median(all_seconds) > bound
        texts = ", ".join("%.2f" % seconds for seconds in all_seconds)
        print("%9d rows, %5.0f MB: %s s, bound %.2f s" % (ids, size / 1e6, texts, bound), flush=True)
    sys.exit(1 if is_late else 0)


if __name__ == "__main__":
    main()
