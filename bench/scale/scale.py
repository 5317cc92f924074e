#!/usr/bin/env python3
"""How far ranks scale: the traffic of a job of ranks in SimGrid's SMPI, on machines that nobody has at hand.

    bench/scale/scale.py [--data DATA] [--steps costs,bytes,check,curve,reductions]

DATA has the files train/part-* of a click log; without it clickgen writes one. Programs are built (scripts/build, unless
--bin says where they are), and SimGrid's Debian packages are unpacked into build/simgrid where they are not there.

  costs       measures what a batch costs one process, and what messages and rows cost ranks (bench_ranks under mpirun)
  bytes       compares the bytes of the model with those that ranks of a real job have sent
  check       compares the simulation with real ranks, all on this machine
  curve       simulates --ranks of them, --ranks_per_host on each host, joined by links of --gbits, for each of --wires
  reductions  simulates 128 ranks, 16 on each host, with what makes messages smaller one by one

Costs and what was measured go to --measured (JSON), from which later calls take them.
"""

import argparse
import dataclasses
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHARDS = 1024
BATCH = 512
PACKAGES = ("libsimgrid-dev", "libsimgrid3.32", "libboost1.74-dev", "libboost-context1.74.0", "libboost-stacktrace1.74.0",
            "libns3.37", "libgsl27", "libgslcblas0")

# configs/wide_deep.prototxt: what is not in tables. Variables of at most 4,096 values are small (ranks/dense_exchange.h).
LAYERS = (26 * 16 + 13, 1024, 512, 256)
LARGE = sum(a * b for a, b in zip(LAYERS, LAYERS[1:]))
SMALL = 2 * (sum(LAYERS[1:]) + 2 + 2 * (LAYERS[-1] + 26))  # with what their optimizer keeps
IN_TURNS = 32
DISTINCT = 0.355  # of the ids of a batch of 512


@dataclasses.dataclass(frozen=True)
class Wire:
    """What travels. Each of WIRES has what the one before it has, and one reduction more."""
    float_bytes: int = 4
    distinct: bool = False   # keys of a batch once, their gradients added up; else one for each id of the batch
    once: bool = False       # keys are told by one pull, for the other table and the pushes as well
    geo_steps: int = 0
    flags: tuple = ()        # of the job that sends so, where there is one


WIRES = {
    "plain": Wire(),
    "bf16": Wire(float_bytes=2),
    "distinct": Wire(float_bytes=2, distinct=True),
    "async": Wire(float_bytes=2, distinct=True, once=True, flags=("dist.update=ASYNC", "dist.wire=BF16")),
    "geo16": Wire(2, True, True, 16, ("dist.update=GEO", "dist.wire=BF16", "dist.geo_steps=16")),
    "geo64": Wire(2, True, True, 64, ("dist.update=GEO", "dist.wire=BF16", "dist.geo_steps=64")),
}

# Bytes of a message but for keys, floats and numbers of lists that are forgotten (ranks/rank_table.cc, ranks/rank_calls.cc).
PULL, PULL_ANSWER, PUSH, PUSH_ANSWER, DENSE, CLOCK = 59, 37, 71, 13, 34, 53


# ---- The keys of batches

def mixed(key):
    key = (key + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return key ^ (key >> 31)


def lines_of(paths):
    for path in paths:
        with open(path, encoding="ascii") as file:
            yield from file


def batches_of(data, count):
    """Ids of the first batches, as pairs of a slot and an id."""
    lines = lines_of(sorted(glob.glob(data + "/train/part-*")))
    for _ in range(count):
        batch = []
        for _ in range(BATCH):
            words = next(lines).split()
            at, slot = 2 + 1 + 13, 0
            while at < len(words):
                ids = int(words[at])
                batch.extend((slot, word) for word in words[at + 1:at + 1 + ids])
                at, slot = at + 1 + ids, slot + 1
        yield batch


class Shards(dict):
    """The virtual shard of a key. Another hash than that of tables, with the same spread."""

    def __missing__(self, key):
        slot, word = key
        shard = self[key] = mixed(mixed(int(word)) + slot) >> 54
        return shard


def by_shard(keys, shards):
    counts = [0] * SHARDS
    for key in keys:
        counts[shards[key]] += 1
    return counts


def samples_of(data, wire, count=48):
    """Keys that batches ask for, by shard, and rows that exchanges of copies have."""
    shards = Shards()
    if wire.geo_steps == 0:
        return [by_shard(set(batch) if wire.distinct else batch, shards) for batch in batches_of(data, count)], []
    # A copy is old where nobody asked for it while two exchanges began (ranks/row_copies.h).
    reads, exchanges, last, used = [], [], {}, set()
    windows = max(6, 4 + count // wire.geo_steps)
    for i, batch in enumerate(batches_of(data, windows * wire.geo_steps)):
        window = i // wire.geo_steps
        keys = set(batch)
        old = [key for key in keys if window - last.get(key, -9) >= 3]
        last.update((key, window) for key in keys)
        used |= keys
        if window >= 4:
            reads.append(by_shard(old, shards))
        if (i + 1) % wire.geo_steps == 0:
            if window >= 3:
                exchanges.append(by_shard(used, shards))
            used = set()
    return reads, exchanges


# ---- Bytes

def parameters_every(ranks, wire):
    if wire.geo_steps and ranks > 2:
        return min(wire.geo_steps, max(8, wire.geo_steps // 2))
    return wire.geo_steps or (16 if ranks == 2 else 8)


def bytes_of_batch(ranks, wire, samples):
    """What all ranks together send for a batch of one of them, by what it is, but for turns and meetings."""
    remote = (ranks - 1) / ranks
    rows = statistics.mean(sum(sample) for sample in samples[0]) * remote
    # Of a batch of few keys some owners have none.
    owners = statistics.mean(sum(1 - (1 - 1 / ranks)**sum(sample) for _ in range(ranks - 1)) for sample in samples[0])
    sent = {}
    if wire.geo_steps:
        used = statistics.mean(sum(sample) for sample in samples[1]) * remote / wire.geo_steps
        states = (3 + 32) * wire.float_bytes
        sent["pulls"] = 2 * owners * (PULL + PULL_ANSWER) + rows * (2 * 8 + states)
        sent["pushes"] = 2 * (ranks - 1) * (PUSH + PULL_ANSWER) / wire.geo_steps + used * (2 * 8 + 4 + 2 * states)
    else:
        floats = (1 + 16) * wire.float_bytes
        told = 1 if wire.once else 4
        sent["keys"] = rows * 8 * told
        sent["pulls"] = 2 * owners * (PULL + PULL_ANSWER) + rows * floats
        sent["pushes"] = 2 * owners * (PUSH + PUSH_ANSWER) + rows * floats
    every = parameters_every(ranks, wire)
    # An exchange of all takes the place of one of small variables.
    values = SMALL / 2 + LARGE / every + LARGE / every / 8
    sent["dense"] = 2 * remote * values * wire.float_bytes + (ranks - 1) * DENSE
    return sent


def bytes_of_job(ranks, wire, samples, examples):
    """All that ranks of a job of one pass send."""
    sent = bytes_of_batch(ranks, wire, samples)
    values = SMALL + 2 * LARGE
    # In turns each rank exchanges everything before its own and behind it, and all but the last one behind all turns.
    turns = (3 * ranks - 1) * (ranks - 1) / ranks * 2 * values * wire.float_bytes
    # Where ranks meet at the end of a pass, all is sent to its owners and back.
    meeting = (ranks - 1) * 2 * values * 4
    batches = examples / BATCH
    return batches * sum(sent.values()) - min(batches, IN_TURNS) * sent["dense"] + turns + meeting


# ---- Real ranks

def run(command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    if done.returncode != 0:
        sys.exit("%s\nexit %d\n%s" % (" ".join(command), done.returncode, (done.stdout + done.stderr)[-3000:]))
    return done.stdout


def mpirun(ranks):
    # By TCP as between hosts, so that what a message costs the processors is what it costs there.
    return ["mpirun", "-n", str(ranks), "--bind-to", "none", "--oversubscribe", "--mca", "btl", "tcp,self"]


def environment():
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def trainer(options, folder, settings):
    command = [options.bin + "/trainer", "--trainer_desc=" + ROOT + "/configs/wide_deep.prototxt",
               "--output_dir=" + folder]
    for setting in ("filelist=" + options.data + "/train/part-*", "thread_num=1", "epochs=1",
                    "output.save_inference_model=false", "checkpoint.every_epochs=0", *settings):
        command += ["--set", setting]
    return command


def run_json(folder):
    with open(folder + "/run.json", encoding="utf-8") as file:
        return json.load(file)


def train_ranks(options, ranks, wire, files="part-*"):
    with tempfile.TemporaryDirectory() as folder:
        filelist = "filelist=" + options.data + "/train/" + files
        run(mpirun(ranks) + trainer(options, folder, (*wire.flags, filelist)), env=environment())
        return run_json(folder)


def train_apart(options, processes):
    """Seconds of a batch where so many processes train some files at once and know nothing of each other."""
    files = ("filelist=" + options.data + "/train/part-*0",)
    with tempfile.TemporaryDirectory() as folder:
        started = [subprocess.Popen(trainer(options, "%s/%d" % (folder, i), files), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL) for i in range(processes)]
        if any(process.wait() for process in started):
            sys.exit("training without ranks failed: " + " ".join(trainer(options, "OUT", ())))
        return statistics.mean(BATCH / run_json("%s/%d" % (folder, i))["examples_per_second"] for i in range(processes))


# ---- Costs

def least_squares(rows, wanted):
    """The factors of the columns that come nearest, by the normal equations."""
    n = len(rows[0])
    matrix = [[sum(row[i] * row[j] for row in rows) for j in range(n)] + [sum(row[i] * y for row, y in zip(rows, wanted))]
              for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(matrix[r][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        for r in range(n):
            if r != i:
                factor = matrix[r][i] / matrix[i][i]
                matrix[r] = [a - factor * b for a, b in zip(matrix[r], matrix[i])]
    return [matrix[i][n] / matrix[i][i] for i in range(n)]


def bench_ranks(options, ranks, keys, batches, what):
    command = mpirun(ranks) + [options.bin + "/bench_ranks", str(keys), str(batches), what, "BF16"]
    runs = [json.loads(run(command, env=environment()).splitlines()[-1]) for _ in range(options.rounds)]
    return min(runs, key=lambda one: one["worker_us"] + one["comm_us"])


def measure_costs(options):
    """Processor time of the thread that trains and of the communicator's: by peer and by key of others for a batch, by value
    of dense parameters for an exchange; and the share of a processor that a rank takes which has nothing to do."""
    points = [bench_ranks(options, ranks, keys, 200, "rows") for ranks in (2, 4, 8, 16) for keys in (256, 4096)]
    local = bench_ranks(options, 1, 4096, 200, "rows")
    table = local["worker_us"] / local["keys"]
    rows = [[1, p["ranks"] - 1, p["keys"] * (p["ranks"] - 1) / p["ranks"]] for p in points]
    # What the worker's own rows cost is part of a batch without ranks, where it has all of them.
    own = [p["keys"] * table / p["ranks"] for p in points]
    worker = least_squares(rows, [p["worker_us"] - o for p, o in zip(points, own)])
    comm = least_squares(rows, [p["comm_us"] for p in points])
    # A row that a rank has a copy of, read once and exchanged once: two requests a table with their answers.
    copies = [bench_ranks(options, ranks, 4096, 100, "copies") for ranks in (2, 4)]
    messages = [(p["ranks"] - 1) * (1 + 1 / 4) / 2 for p in copies]
    others = [p["keys"] * (p["ranks"] - 1) / p["ranks"] for p in copies]
    copy_worker = [(p["worker_us"] - worker[0] - m * worker[1]) / o - table * p["ranks"] / (p["ranks"] - 1)
                   for p, m, o in zip(copies, messages, others)]
    copy_comm = [(p["comm_us"] - comm[0] - m * comm[1]) / o for p, m, o in zip(copies, messages, others)]
    dense = [bench_ranks(options, ranks, 500000, 10, "dense") for ranks in (2, 4, 8)]
    idle = {ranks: bench_ranks(options, ranks, 1, 100, "idle")["comm_us"] / 1e4 for ranks in (2, 4, 8)}
    # A batch has four requests to each peer, and as many of each peer; sixteen messages are sent or taken.
    return {
        "points": points + [local] + copies + dense, "idle": [idle[2], idle[4], idle[8]],
        "worker_us": worker[0], "worker_peer_us": worker[1], "worker_key_us": worker[2] - table,
        "table_us": table,
        "comm_us": comm[0], "comm_message_us": comm[1] / 16, "comm_key_us": comm[2],
        "worker_copy_us": statistics.mean(copy_worker), "comm_copy_us": statistics.mean(copy_comm),
        "worker_value_us": statistics.mean(p["worker_us"] / p["keys"] / 2 for p in dense),
        "comm_value_us": statistics.mean(p["comm_us"] / p["keys"] / 2 for p in dense),
    }


# ---- SimGrid

class SimGrid:
    """Debian's packages, unpacked: Boost 1.74 would take the place of an installed one of another version."""

    def __init__(self, folder, build):
        self.root = os.path.abspath(folder)
        self.build = build
        self.libraries = os.path.join(self.root, "usr", "lib", "x86_64-linux-gnu")
        self.smpirun = os.path.join(self.root, "usr", "bin", "smpirun")

    def is_there(self):
        return os.path.exists(self.smpirun)

    def unpack(self):
        with tempfile.TemporaryDirectory() as folder:
            run(["apt-get", "download", *PACKAGES], cwd=folder)
            for archive in glob.glob(folder + "/*.deb"):
                run(["dpkg", "-x", archive, self.root + ".new"])
        # These scripts name the folders that they are installed into.
        for script in ("smpirun", "smpicxx"):
            path = self.root + ".new/usr/bin/" + script
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for name in ("lib", "include", "bin/smpi"):
                text = text.replace("/usr/" + name, self.root + "/usr/" + name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        os.rename(self.root + ".new", self.root)

    def compile(self):
        os.makedirs(self.build, exist_ok=True)
        source, program = HERE + "/traffic.cc", self.build + "/traffic.so"
        if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
            run([self.root + "/usr/bin/smpicxx", "-std=c++20", "-O2", "-Wall", "-Wextra", source, "-o", program],
                env=dict(os.environ, LD_LIBRARY_PATH=self.libraries))
        return program

    def simulate(self, platform, hosts, values, samples):
        """Starts two processes of traffic.cc for each of `hosts`, the host of each rank; what they print."""
        program = self.compile()
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/platform.xml", "w", encoding="utf-8") as file:
                file.write("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                           "<platform version=\"4.1\">\n%s</platform>\n" % platform)
            with open(folder + "/hosts", "w", encoding="utf-8") as file:
                file.write("".join("%s\n%s\n" % (host, host) for host in hosts))
            with open(folder + "/input", "w", encoding="utf-8") as file:
                file.write("".join("%s %.9g\n" % item for item in values.items()))
                for name, lists in zip(("samples", "exchanges"), samples):
                    file.write("%s %d\n" % (name, len(lists)))
                    file.write("".join(" ".join(map(str, counts)) + "\n" for counts in lists))
            output = run([self.smpirun, "-np", str(2 * len(hosts)), "-platform", folder + "/platform.xml", "-hostfile",
                          folder + "/hosts", "-no-privatize", "--log=root.thresh:error",
                          "--cfg=smpi/simulate-computation:no", "--cfg=smpi/iprobe:0", "--cfg=network/model:CM02",
                          "--cfg=network/latency-factor:1", "--cfg=network/bandwidth-factor:0.95",
                          "--cfg=network/TCP-gamma:0", "--cfg=network/crosstraffic:0",
                          # Messages travel without their receiver, as bytes of a socket do.
                          "--cfg=smpi/async-small-thresh:100000000", "--cfg=smpi/send-is-detached-thresh:100000000",
                          "--cfg=contexts/stack-size:256", program, folder + "/input"], cwd=folder)
        return json.loads(output.splitlines()[-1])


def cluster(gbits, latency_us, ranks, processors):
    """Hosts with a link each to a switch that holds none back."""
    return ('<cluster id="c" prefix="h" suffix="" radical="0-%d" speed="1Gf" core="%d" bw="%gGbps" lat="%gus" '
            'sharing_policy="SPLITDUPLEX" loopback_bw="1000GBps" loopback_lat="0"/>\n' %
            (ranks - 1, processors, gbits, latency_us / 2))


def one_host(processors, busy):
    """All ranks on one machine. The network of a machine with itself is work of its processors, which is in the costs.
    `busy` is the share of the processors that is taken by idle ranks' looking for messages."""
    return ('<zone id="z" routing="Full"><host id="h0" speed="%.9gGf" core="%d"/>'
            '<link id="l" bandwidth="1000GBps" latency="0" sharing_policy="FATPIPE"/>'
            '<route src="h0" dst="h0"><link_ctn id="l"/></route></zone>\n' % (1 - busy, processors))


def values_of(ranks, wire, samples, costs, batch_seconds, group, batches, spins=0, dense_every=2):
    keys = statistics.mean(sum(sample) for sample in samples[0])
    if not wire.distinct:
        # The work that a worker without ranks has with a table is that of distinct keys.
        costs = dict(costs, worker_key_us=costs["worker_key_us"] + costs["table_us"] * (1 - DISTINCT))
    if wire.geo_steps:
        # What costs is a row that is read, and exchanged later.
        keys = (keys + statistics.mean(sum(sample) for sample in samples[1]) / wire.geo_steps) / 2
        costs = dict(costs, worker_key_us=costs["worker_copy_us"], comm_key_us=costs["comm_copy_us"],
                     worker_peer_us=costs["worker_peer_us"] * (1 + 1 / wire.geo_steps) / 2)
    return {
        "batches": batches, "warm": 3, "group": group, "spins": spins, "batch_seconds": batch_seconds, "keys": keys,
        "float_bytes": wire.float_bytes, "geo_steps": wire.geo_steps, "keys_travel_once": int(wire.once),
        "request_bytes": (PULL + PUSH) / 2, "answer_bytes": PULL_ANSWER, "done_bytes": PUSH_ANSWER,
        "dense_bytes": DENSE / 2, "clock_bytes": CLOCK,
        "dense_every": dense_every, "parameters_every": parameters_every(ranks, wire), "rest_every": 8,
        "small_values": SMALL, "parameter_values": LARGE, "rest_values": LARGE,
        **{name: cost for name, cost in costs.items() if name.endswith("_us")},
    }


# ---- Steps

def said(text):
    print(text, flush=True)


def step_costs(options, measured):
    measured["costs"] = measure_costs(options)
    said("microseconds: " + ", ".join("%s %.3g" % item for item in measured["costs"].items() if item[0].endswith("_us")))
    said("share of a processor that looks for messages in vain, 2, 4 and 8 ranks: %s" % measured["costs"]["idle"])
    step_batch(options, measured)


def step_batch(options, measured):
    """What a batch costs where as many processes train at once as there are processors."""
    measured["processors"] = len(os.sched_getaffinity(0))
    runs = sorted(train_apart(options, measured["processors"]) for _ in range(options.rounds))
    measured["batch"] = statistics.median(runs)
    said("a batch, %d processes at once: %s ms" % (measured["processors"], ", ".join("%.1f" % (1e3 * run) for run in runs)))


def step_bytes(options, measured):
    said("bytes an example, all of a job: model, run.json, error")
    for name, ranks in (("async", 2), ("async", 4), ("async", 8), ("geo16", 2), ("geo64", 2)):
        wire = WIRES[name]
        real = train_ranks(options, ranks, wire)
        model = bytes_of_job(ranks, wire, samples_of(options.data, wire), real["examples"]) / real["examples"]
        counted = real["dist"]["bytes_per_example"]
        said("  %-8s %2d ranks  %7.0f  %7.0f  %+.1f %%" % (name, ranks, model, counted, 100 * (model / counted - 1)))


def step_check(options, measured):
    """Ranks of this machine, which share its processors, beside the simulation of just that."""
    simgrid, costs = simgrid_of(options), measured["costs"]
    cells = [(name, i) for name in ("async", "geo16") for i in range(3)]
    seconds, apart, examples = {}, [], {}
    for _ in range(options.rounds):
        for cell in cells:
            apart.append(train_apart(options, measured["processors"]))
            # Between a job of half of the files and one of all lie no turns, and nothing that comes at the end.
            for files in ("part-*[02468]", "part-*"):
                run_of = train_ranks(options, 2 << cell[1], WIRES[cell[0]], files)
                seconds.setdefault((*cell, files), []).append(run_of["seconds"])
                examples[files] = run_of["examples"]
    # Of each the least of its rounds: what else the machine does makes it slower.
    measured["batch"] = min(apart)
    said("a batch, %d processes at once: %.1f to %.1f ms" % (measured["processors"], 1e3 * min(apart), 1e3 * max(apart)))
    said("examples/s of all ranks on %d processors: simulated, measured, error; seconds" % measured["processors"])
    for cell in cells:
        wire, ranks = WIRES[cell[0]], 2 << cell[1]
        samples = samples_of(options.data, wire)
        host = one_host(measured["processors"], ranks * costs["idle"][cell[1]] / measured["processors"])
        values = values_of(ranks, wire, samples, costs, measured["batch"], 1, 32, 1)
        model = ranks * BATCH / simgrid.simulate(host, ["h0"] * ranks, values, samples)["batch_s"]
        half, whole = (seconds[(*cell, files)] for files in ("part-*[02468]", "part-*"))
        real = (examples["part-*"] - examples["part-*[02468]"]) / (min(whole) - min(half))
        said("  %-6s %d ranks  %6.0f  %6.0f  %+.1f %%  %s" % (
            cell[0], ranks, model, real, 100 * (model / real - 1),
            "; ".join(", ".join("%.1f" % one for one in sorted(runs)) for runs in (half, whole))))


def binds(result, batch_seconds, link_share):
    """What a batch of a rank waits for, in words."""
    if batch_seconds / result["batch_s"] > 0.9:
        return "training"
    shares = {"rows": result["comm_rows_s"], "dense": result["comm_dense_s"], "clocks": result["comm_clocks_s"]}
    busy = sum(shares.values()) / result["batch_s"]
    if max(busy, link_share) < 0.7:
        waits = result["pull_wait_s"] + result["push_wait_s"] > 0.05 * result["batch_s"]
        return "worker" if not waits else "link, in bursts" if link_share > 0.3 else "latency"
    return "link" if link_share > busy else "messages (%s)" % max(shares, key=shares.get)


def step_curve(options, measured):
    simgrid, costs, batch = simgrid_of(options), measured["costs"], measured["batch"]
    results = measured.setdefault("curve", [])
    for name in options.wires.split(","):
        wire = WIRES[name]
        samples = samples_of(options.data, wire)
        for ranks in map(int, options.ranks.split(",")):
            # A simulation does not get through all messages of many ranks: some owners are sent theirs as one.
            group = math.ceil(ranks / (32 if ranks <= 32 else 16 if ranks < 500 else 8))
            values = values_of(ranks, wire, samples, costs, batch, group, 8 if ranks > 100 else max(16, wire.geo_steps),
                               dense_every=0 if options.no_dense else 2)
            for gbits in map(float, options.gbits.split(",")):
                hosts = ["h%d" % (r // options.ranks_per_host) for r in range(ranks)]
                platform = cluster(gbits, options.latency_us, math.ceil(ranks / options.ranks_per_host),
                                   2 * options.ranks_per_host)
                result = simgrid.simulate(platform, hosts, values, samples)
                # Of a rank's messages, those to others of its host use no link.
                away = max(0, ranks - options.ranks_per_host) / max(1, ranks - 1)
                link = result["bytes"] * away * min(ranks, options.ranks_per_host) * 8 / (gbits * 0.95e9) / result["batch_s"]
                comm = result["comm_rows_s"] + result["comm_dense_s"] + result["comm_clocks_s"]
                results.append(dict(result, wire=name, ranks=ranks, gbits=gbits, per_host=options.ranks_per_host,
                                    link=link, efficiency=batch / result["batch_s"]))
                said("  %-8s %4d ranks %5g Gb/s  %7.0f examples/s a rank  %.2f  %6.0f bytes an example  link %.2f  "
                     "communicator %.2f  %s" % (name, ranks, gbits, BATCH / result["batch_s"], batch / result["batch_s"],
                                                result["bytes"] / BATCH, link, comm / result["batch_s"],
                                                binds(result, batch, link)))


def simgrid_of(options):
    simgrid = SimGrid(options.simgrid, ROOT + "/build/scale")
    if not simgrid.is_there():
        simgrid.unpack()
    return simgrid


def step_reductions(options, measured):
    step_curve(argparse.Namespace(**dict(vars(options), ranks="128", ranks_per_host=16, wires=",".join(WIRES))), measured)


STEPS = {"costs": step_costs, "bytes": step_bytes, "check": step_check, "curve": step_curve,
         "reductions": step_reductions}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of a click log")
    parser.add_argument("--bin", help="folder of the programs; without it they are built")
    parser.add_argument("--simgrid", default=ROOT + "/build/simgrid", help="where SimGrid is, or is unpacked to")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--measured", default=ROOT + "/build/scale/measured.json")
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement")
    parser.add_argument("--ranks", default="2,8,32,128,512,1000")
    parser.add_argument("--gbits", default="10,25,100", help="of a host's link, each way")
    parser.add_argument("--latency_us", type=float, default=20, help="from host to host")
    parser.add_argument("--ranks_per_host", type=int, default=1)
    parser.add_argument("--wires", default="async,geo64", help="what travels: " + ", ".join(WIRES))
    parser.add_argument("--no_dense", action="store_true", help="nothing but rows travels")
    options = parser.parse_args()
    if options.bin is None:
        run([ROOT + "/scripts/build", "release", "trainer", "clickgen", "millrace_mpi", "bench_ranks"])
        options.bin = ROOT + "/build/release/bin"
    os.makedirs(os.path.dirname(os.path.abspath(options.measured)), exist_ok=True)
    measured = {}
    if os.path.exists(options.measured):
        with open(options.measured, encoding="utf-8") as file:
            measured = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        if options.data is None:
            options.data = folder + "/clicks"
            run([options.bin + "/clickgen", "--output_dir=" + options.data, "--rows=131072", "--parts=16"])
        for step in options.steps.split(","):
            STEPS[step](options, measured)
            with open(options.measured, "w", encoding="utf-8") as file:
                json.dump(measured, file, indent=1)


if __name__ == "__main__":
    main()
