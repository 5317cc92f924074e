#!/usr/bin/env python3
"""Stops long runs by SIGINT at random moments, and prints how long each took to end and what it left.

    bench/growth/stop.py [--bin build/release/bin] [--run slow_job] [--moments 100] [--seed 1] [--signal INT]

A run is a line in RUNS: a program at something that takes long. It is run once undisturbed, or for so many seconds as are
said there, to know what moments there are; then it is stopped at moments that the seed draws from them; one at which it
is over already is drawn again. What must hold, or the moment is printed and the exit code is 1:

- the run ends with 130 (one that was over before it heard of the stop: as without it), with no child and no half-written
  file;
- within a second, or, where it writes a checkpoint of what it trained, never without a word for longer than a second.
"""

import argparse
import collections
import dataclasses
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import growth

ROOT = growth.ROOT
MARK = "MILLRACE_STOP_MARK"
MOST_SECONDS = 1.0

Outcome = collections.namedtuple("Outcome", "moment was_over code ended busy silent left words")


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def slots_text(slots):
    return "".join('    slots { name: "S%d_0..S%d_%d" type: "uint64" is_used: true }\n' %
                   (i, i, min(50000, slots - i * 50000) - 1) for i in range((slots + 49999) // 50000))


# The runs. Each makes what it needs in a folder, and returns its command; OUT stands for a folder of each moment's own.


def compile_slots(slots):
    def make(folder, bin_folder):
        growth.slot_job(slots, folder)
        return [bin_folder + "/trainer", "--trainer_desc=" + folder + "/job.prototxt", "--output_dir=OUT"]
    return make


def fuse_slots(folder, bin_folder):
    """60,000 slots of which one is looked at, so that they are lowered one by one and then fused."""
    return compile_slots(60000)(folder, bin_folder) + ["--set", "check_nan_var_names=vectors.S0_1", "--set",
                                                       "output.save_inference_model=false"]


def inspect_slots(folder, bin_folder):
    growth.slot_job(60000, folder)
    return [bin_folder + "/inspect", "stats", "--trainer_desc=" + folder + "/job.prototxt"]


def small_lines(folder, rows, ids_a_row, files=1, first=0):
    """Files of lines with a label and so many ids that no other line has."""
    names = []
    for part in range(files):
        names.append("%s/data-%d.txt" % (folder, part))
        with open(names[-1], "w", encoding="utf-8") as file:
            for _ in range(rows):
                ids = " ".join(map(str, range(first + 1, first + 1 + ids_a_row)))
                file.write("1 %d %d %s\n" % (first // ids_a_row % 2, ids_a_row, ids))
                first += ids_a_row
    return names


def one_slot_job(folder, files, table, extra="", data=""):
    return write(folder + "/job.prototxt", """%s
data_desc { batch_size: 64 %s multi_slot_desc {
  slots { name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
  slots { name: "ids" type: "uint64" is_used: true } } }
dataset { class_name: "QueueDataset" }
model {
  table { name: "rows" dim: 64 %s optimizer { adagrad { lr: 0.1 } } }
  layer { name: "vectors" embedding { slots: "ids" table: "rows" } }
  layer { name: "logit" fc { in: "vectors" units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "logit" label: "label" }
  optimizer { adagrad { lr: 0.1 } }
}
%s""" % ("".join('filelist: "%s"\n' % name for name in files), data, table, extra))


def dense_table(folder, bin_folder):
    """Initialises 12M x 64 values, 3 GB, and as much state."""
    job = one_slot_job(folder, small_lines(folder, 200, 5), "vocabulary: 12000000")
    return [bin_folder + "/trainer", "--trainer_desc=" + job]


def grown(folder, bin_folder):
    """A job whose table of 2 GB (state included) stands in FOLDER/out; trained further it goes on from there."""
    files = small_lines(folder, 40000, 100)
    job = one_slot_job(folder, files, "")
    subprocess.run([bin_folder + "/trainer", "--trainer_desc=" + job, "--output_dir=" + folder + "/out"], check=True,
                   stderr=subprocess.DEVNULL)
    return job


def load_table(folder, bin_folder):
    """Goes on from a checkpoint of 2 GB, and saves the same again."""
    job = grown(folder, bin_folder)
    return [bin_folder + "/trainer", "--trainer_desc=" + job, "--output_dir=OUT", "--resume=auto", "--set", "epochs=2"]


def load_dense(folder, bin_folder):
    """The same of a table with a vocabulary: 1.5 GB of dense parameters."""
    job = one_slot_job(folder, small_lines(folder, 200, 5), "vocabulary: 3000000")
    subprocess.run([bin_folder + "/trainer", "--trainer_desc=" + job, "--output_dir=" + folder + "/out"], check=True,
                   stderr=subprocess.DEVNULL)
    return [bin_folder + "/trainer", "--trainer_desc=" + job, "--output_dir=OUT", "--resume=auto", "--set", "epochs=2"]


def load_model(folder, bin_folder):
    """A predictor of a model of 1 GB."""
    grown(folder, bin_folder)
    shutil.rmtree(folder + "/out/checkpoints")
    return [bin_folder + "/predictor", "--model_dir=" + folder + "/out/model", "--input=" + folder + "/data-0.txt",
            "--pipe_command=cat", "--output=/dev/null"]


def slow_files(folder, bin_folder):
    files = small_lines(folder, 10, 5, files=20)
    job = one_slot_job(folder, files, "", data='pipe_command: "sleep 600; cat"')
    return [bin_folder + "/trainer", "--trainer_desc=" + job, "--output_dir=OUT"]


def missing_files(folder, bin_folder):
    """50 MB of a filelist whose files are not there."""
    names = ['filelist: "%s/missing/part-%09d"' % (folder, i) for i in range(50 * 2**20 // (len(folder) + 37))]
    job = one_slot_job(folder, [], "", extra="\n".join(names) + "\n")
    return [bin_folder + "/trainer", "--trainer_desc=" + job]


def endless_predictor(folder, bin_folder):
    """A model of Paddle with a loop that never ends."""
    kind = "type { type: LOD_TENSOR lod_tensor { tensor { data_type: %s %s } } }"
    text = """blocks { idx: 0 parent_idx: -1
  vars { name: "feed" type { type: FEED_MINIBATCH } persistable: true }
  vars { name: "fetch" type { type: FETCH_LIST } persistable: true }
  vars { name: "x" need_check_feed: true FLOATS } vars { name: "y" FLOATS } vars { name: "on" BOOL }
  ops { type: "feed" inputs { parameter: "X" arguments: "feed" } outputs { parameter: "Out" arguments: "x" }
        attrs { name: "col" type: INT i: 0 } }
  ops { type: "fill_constant" outputs { parameter: "Out" arguments: "on" } attrs { name: "shape" type: LONGS longs: 1 }
        attrs { name: "dtype" type: INT i: 0 } attrs { name: "value" type: FLOAT f: 1 } }
  ops { type: "scale" inputs { parameter: "X" arguments: "x" } outputs { parameter: "Out" arguments: "y" }
        attrs { name: "scale" type: FLOAT f: 1 } attrs { name: "bias" type: FLOAT f: 0 }
        attrs { name: "bias_after_scale" type: BOOLEAN b: true } }
  ops { type: "while" inputs { parameter: "X" arguments: "y" } inputs { parameter: "Condition" arguments: "on" }
        outputs { parameter: "Out" arguments: "y" } outputs { parameter: "StepScopes" }
        attrs { name: "sub_block" type: BLOCK block_idx: 1 } attrs { name: "is_test" type: BOOLEAN b: true } }
  ops { type: "fetch" inputs { parameter: "X" arguments: "y" } outputs { parameter: "Out" arguments: "fetch" }
        attrs { name: "col" type: INT i: 0 } }
}
blocks { idx: 1 parent_idx: 0
  ops { type: "scale" inputs { parameter: "X" arguments: "y" } outputs { parameter: "Out" arguments: "y" }
        attrs { name: "scale" type: FLOAT f: 1 } attrs { name: "bias" type: FLOAT f: 0 }
        attrs { name: "bias_after_scale" type: BOOLEAN b: true } }
}
version { version: 0 }
"""
    text = text.replace("FLOATS", kind % ("FP32", "dims: -1 dims: 1")).replace("BOOL }", kind % ("BOOL", "dims: 1") + " }")
    os.makedirs(folder + "/model")
    encode = ["protoc", "-I" + ROOT + "/proto", "--encode=millrace.ProgramDesc", "framework.proto"]
    encoded = subprocess.run(encode, input=text.encode(), check=True, stdout=subprocess.PIPE).stdout
    with open(folder + "/model/__model__", "wb") as file:
        file.write(encoded)
    feed = write(folder + "/feed.prototxt", 'batch_size: 1 multi_slot_desc { slots { name: "x" type: "float" '
                 "is_used: true is_dense: true shape: [-1, 1] } }")
    lines = write(folder + "/lines", "1 1\n")
    return [bin_folder + "/predictor", "--model_dir=" + folder + "/model", "--data_feed=" + feed, "--input=" + lines]


def slow_job(folder, bin_folder):
    """10,000 slots, tables of 2 GB with their state, files that come slowly, checkpoints, an evaluation, a model."""
    slots = 10000
    growth.slot_job(slots, folder)
    with open(folder + "/job.prototxt", encoding="utf-8") as file:
        text = file.read()
    files = []
    for part in range(5):
        files.append("%s/part-%d" % (folder, part))
        with open(files[-1], "w", encoding="utf-8") as file:
            for row in range(16 if part < 4 else 4):
                first = (part * 16 + row) * slots
                file.write("1 %d " % (row % 2) + " ".join("1 %d" % (first + i) for i in range(slots)) + "\n")
    text = text.replace('filelist: "%s/data.txt"\n' % folder, "".join('filelist: "%s"\n' % name for name in files))
    text = text.replace("batch_size: 4", 'batch_size: 4 thread_num: 1 pipe_command: "sleep 0.3; cat"')
    # 1 GB that is initialised, and 1 GB that grows as rows come.
    text = text.replace('table { name: "rows" dim: 8', 'table { name: "wide" dim: 64 vocabulary: 2000000 '
                        'optimizer { adagrad { lr: 0.1 } } }\n  table { name: "rows" dim: 168')
    text = text.replace('layer { name: "logit" fc { in: "vectors"', 'layer { name: "w" embedding { slots: "S0_0" '
                        'table: "wide" } }\n  layer { name: "logit" fc { in: ["vectors", "w"]')
    job = write(folder + "/job.prototxt", text + 'checkpoint { every_steps: 10 keep: 1 } eval { filelist: "%s" every_steps: 12 }\n' %
                files[-1])
    return [bin_folder + "/trainer", "--trainer_desc=" + job, "--output_dir=OUT"]


@dataclasses.dataclass
class Run:
    make: object         # function of a folder and the folder of the programs; returns the command
    seconds: float = 0   # of a run that does not end by itself; 0: until its end
    saves: bool = False  # whether it may write a checkpoint of what it trained, which takes as long as it takes


RUNS = {
    "slots_10000": Run(compile_slots(10000)),
    "slots_60000": Run(compile_slots(60000)),
    "fuse_slots": Run(fuse_slots),
    "inspect_slots": Run(inspect_slots),
    "dense_table": Run(dense_table),
    "load_table": Run(load_table, saves=True),
    "load_dense": Run(load_dense, saves=True),
    "load_model": Run(load_model),
    "slow_files": Run(slow_files, seconds=3),
    "missing_files": Run(missing_files),
    "endless_predictor": Run(endless_predictor, seconds=2),
    "slow_job": Run(slow_job, saves=True),
}


def marked(mark):
    """Processes that have the mark in their environment, by what it is called there."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                if ("%s=%s" % (MARK, mark)).encode() not in file.read().split(b"\0"):
                    continue
            with open("/proc/%s/stat" % pid, encoding="utf-8") as file:
                name, state = file.read().rsplit(")", 1)
            if state.split()[0] != "Z":
                found.append(name.replace("(", "") + " is left")
        except OSError:
            continue
    return found


def unfinished(folder):
    return ["half-written: " + os.path.join(base, name) for base, folders, files in os.walk(folder)
            for name in folders + files if "writing" in name]


def processor_seconds(pid):
    """What a process has used so far; 0 of one that is over."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Words(threading.Thread):
    """What a process writes on standard error, and when."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream = stream
        self.pieces = []
        self.start()

    def run(self):
        while True:
            piece = os.read(self.stream.fileno(), 65536)
            if not piece:
                return
            self.pieces.append((time.monotonic(), piece.decode(errors="replace")))


def disturb(command, folder, moment, number):
    """Runs a command and stops it after so many seconds; without a moment, waits for its end."""
    mark = "%d-%f" % (os.getpid(), time.monotonic())
    out = folder + "/moment"
    shutil.rmtree(out, ignore_errors=True)
    if os.path.isdir(folder + "/out") and "--resume=auto" in command:
        subprocess.run(["cp", "-al", folder + "/out", out], check=True)  # files are never written over, but replaced
    command = [word.replace("OUT", out) for word in command]
    started = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          start_new_session=True, env={**os.environ, MARK: mark}) as process:
        words = Words(process.stderr)
        if moment is not None:
            try:
                process.wait(timeout=max(0, started + moment - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
        stopped = time.monotonic()
        before = processor_seconds(process.pid)
        was_over = process.poll() is not None
        if moment is not None and not was_over:
            process.send_signal(number)
        busy = 0.0
        while process.poll() is None and time.monotonic() < stopped + 300:
            busy = max(busy, processor_seconds(process.pid) - before)
            time.sleep(0.005)
        over = time.monotonic()
        process.kill()
        left = marked(mark)
        words.join(timeout=5)
    left += unfinished(out)
    shutil.rmtree(out, ignore_errors=True)
    at = [stopped] + [when for when, _ in words.pieces if stopped < when < over] + [over]
    silent = max(after - before for before, after in zip(at, at[1:]))
    said = "".join(piece for when, piece in words.pieces if when > stopped)
    return Outcome(stopped - started, was_over, process.returncode, over - stopped, busy, silent, left, said)


def broken(outcome, run, own_code):
    """What of an outcome must not be; empty: nothing."""
    problems = list(outcome.left)
    if outcome.code not in (own_code, 130):
        problems.append("exit code %d" % outcome.code)
    writes = run.saves and "is being written" in outcome.words
    if outcome.ended > MOST_SECONDS and not writes:
        problems.append("ended after %.2f s" % outcome.ended)
    if outcome.silent > MOST_SECONDS and writes:
        problems.append("silent for %.2f s" % outcome.silent)
    return problems


def measure(name, options):
    run = RUNS[name]
    rng = random.Random(options.seed)
    outcomes = []
    bad = 0
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        command = run.make(folder, os.path.abspath(options.bin))
        calm = disturb(command, folder, run.seconds or None, options.number)
        span = calm.moment + calm.ended if run.seconds == 0 else run.seconds
        print("%s: %.1f s undisturbed, %d moments, seed %d" % (name, span, options.moments, options.seed), flush=True)
        while len(outcomes) < options.moments:
            outcome = disturb(command, folder, rng.uniform(0.02, span), options.number)
            if outcome.was_over:  # files are in memory by now: the run is shorter than the first one
                span = outcome.moment
                continue
            outcomes.append(outcome)
            problems = broken(outcome, run, calm.code)
            bad += bool(problems)
            if problems or options.verbose:
                print("  after %6.2f s: exit %d after %.2f s (%.2f s of a processor), silent for %.2f s%s%s" % (
                    outcome.moment, outcome.code, outcome.ended, outcome.busy, outcome.silent, "; " if problems else "",
                    "; ".join(problems)), flush=True)
                if options.verbose:
                    print("    | " + outcome.words.strip().replace("\n", "\n    | "), flush=True)
    ended = sorted(outcome.ended for outcome in outcomes)
    silent = max(outcome.silent for outcome in outcomes)
    busy = max([outcome.busy for outcome in outcomes if "is being written" not in outcome.words], default=0)
    codes = collections.Counter(outcome.code for outcome in outcomes)
    within = sum(seconds <= MOST_SECONDS for seconds in ended)
    print("%-18s ended within a second %d of %d, median %.2f s, longest %.2f s; longest silence %.2f s; most of a "
          "processor without a save %.2f s; exit codes %s; %d beyond what must hold (load %.1f)" % (
              name, within, len(ended), ended[len(ended) // 2], ended[-1], silent, busy, dict(codes), bad,
              os.getloadavg()[0]), flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT + "/build/release/bin", help="folder of the programs")
    parser.add_argument("--run", default=",".join(RUNS), help="names, with commas between; all by default")
    parser.add_argument("--moments", type=int, default=10, help="of each run")
    parser.add_argument("--seed", type=int, default=1, help="what the moments are drawn from")
    parser.add_argument("--signal", default="INT", help="INT, TERM or HUP")
    parser.add_argument("--work", help="folder for some GB; by default that of temporary files")
    parser.add_argument("--verbose", action="store_true", help="print every moment, and what was said after it")
    options = parser.parse_args()
    options.number = getattr(signal, "SIG" + options.signal)
    unknown = [name for name in options.run.split(",") if name not in RUNS]
    if unknown:
        parser.error("no run %s; there are %s" % (", ".join(unknown), ", ".join(RUNS)))
    sys.exit(1 if sum(measure(name, options) for name in options.run.split(",")) else 0)


if __name__ == "__main__":
    main()
