#!/usr/bin/env python3
"""Runs Millrace and its peers in turn on the same log and prints medians, spreads and ratios as Markdown.

    bench/e2e/compare.py --data DATA --peers ../shared/bench --systems inmem1,paddle-inmem1,torch1 --reps 3

DATA is what gen.py wrote. Peers run under the interpreters named by PADDLE_PYTHON and TORCH_PYTHON. Every round runs each
system once, so that a drift of the machine meets all of them; the first of --systems is what the ratios refer to.
Examples per second are those of the training passes alone for in-memory runs and of the whole pass (pipe and parse
included) for runs from files. lr-queue1 and lr-queue2 (Adagrad) and lr-ftrl1 and lr-ftrl2 (configs/lr.prototxt) train
logistic regression straight from text and are timed as whole processes, start to end; vw reads --vw_text, what
to_text.py wrote, under the interpreter VW_PYTHON, and is timed without that interpreter's start and imports.
load1 and load2 are lines a second of load_into_memory, with paddle-load1 and paddle-load2 beside them.
gemm1 and gemm2 are the examples a second that the model's matrix products would allow by themselves, with as many
processes at once; needs bench_gemm (configure with -DMILLRACE_BENCH=ON).
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    return {**env, "OMP_NUM_THREADS": "1", **more}


def run(command, env, cwd=None):
    done = subprocess.run(command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}\nexit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def write_job(args, folder, *job_flags):
    job = run([sys.executable, f"{HERE}/write_job.py", "--data", args.data, "--parts", str(args.parts), *job_flags],
              environment())
    path = f"{folder}/job.prototxt"
    with open(path, "w", encoding="utf-8") as f:
        f.write(job)
    return path


def train(args, folder, job, *flags):
    """The report of a run, and the seconds of its process."""
    start = time.perf_counter()
    run([args.trainer, f"--trainer_desc={job}", f"--output_dir={folder}/out", *flags], environment())
    seconds = time.perf_counter() - start
    with open(f"{folder}/out/run.json", encoding="utf-8") as f:
        return json.load(f), seconds


def millrace(args, *job_flags):
    with tempfile.TemporaryDirectory() as folder:
        report, _ = train(args, folder, write_job(args, folder, *job_flags))
        return float(report["examples_per_second"]), report


def logistic_regression(args, threads):
    with tempfile.TemporaryDirectory() as folder:
        job = write_job(args, folder, "--dataset", "QueueDataset", "--model", "lr", "--threads", threads)
        report, seconds = train(args, folder, job)
        return report["data"]["lines"] / seconds, report


def lr_config(args, threads):
    files = f"{args.data}/train/part-0000[0-{args.parts - 1}]"
    with tempfile.TemporaryDirectory() as folder:
        report, seconds = train(args, folder, f"{HERE}/../../configs/lr.prototxt", "--set", f"thread_num={threads}",
                                "--set", f"filelist={files}")
        return report["data"]["lines"] / seconds, report


def gemm(args, processes):
    """Seconds a batch of all forward and backward products of fc 400-400-400-2 over 429 inputs."""
    command = [args.gemm_bench, "--benchmark_filter=OursBench/.*fp32/(429|400)/", "--benchmark_format=json"]
    started = [subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
               for _ in range(processes)]
    rate = 0.0
    for process in started:
        rows = json.loads(process.communicate()[0])["benchmarks"]
        seconds = {size: sum(row["real_time"] for row in rows if f"/{size}/" in row["name"]) / 1e9
                   for size in ("429/400", "400/400", "400/2")}
        rate += 512 / (seconds["429/400"] + 2 * seconds["400/400"] + seconds["400/2"])
    return rate, {"examples_per_second": rate}


def peer_report(args, interpreter, script, *flags, **env):
    with tempfile.TemporaryDirectory() as folder:  # Paddle writes files where it stands
        out = run([interpreter, f"{args.peers}/{script}", "--data", args.data, "--parts", str(args.parts), *flags],
                  environment(**env), folder)
    return json.loads([line for line in out.splitlines() if line.startswith("RESULT ")][-1][7:])


def peer(args, interpreter, script, *flags, **env):
    report = peer_report(args, interpreter, script, *flags, **env)
    return float(statistics.median(report["ex_s"])), report


def lines_of(args):
    with open(f"{args.data}/meta.json", encoding="utf-8") as f:
        return json.load(f)["train"]["lines"] // 8 * args.parts


def vowpal_wabbit(args):
    code = ("import time; from vowpalwabbit import Workspace; start = time.perf_counter(); "
            f"Workspace('-d {args.vw_text} -b 22 --loss_function logistic --quiet').finish(); "
            "print('SECONDS', time.perf_counter() - start)")
    out = run([os.environ.get("VW_PYTHON", "python3"), "-c", code], environment())
    return lines_of(args) / float(out.split("SECONDS ")[-1]), {"out": out}


def load(args, threads):
    _, report = millrace(args, "--dataset", "InMemoryDataset", "--model", "lr", "--threads", threads)
    return report["data"]["lines"] / report["stage_seconds"]["load"], report


def paddle_load(args, interpreter, threads):
    report = peer_report(args, interpreter, "paddle_bench.py", "--mode", "load", "--threads", threads)
    return float(report["load_lines_s"]), report


def systems(args):
    paddle = os.environ.get("PADDLE_PYTHON", "python3")
    torch = os.environ.get("TORCH_PYTHON", "python3")
    table = {}
    for threads in (1, 2):
        t = str(threads)
        for name, dataset in (("inmem", "InMemoryDataset"), ("queue", "QueueDataset")):
            for suffix, more in (("", ()), ("-bf16", ("--precision", "BF16")), ("-hash", ("--tables", "hash"))):
                table[f"{name}{t}{suffix}"] = lambda d=dataset, m=more, n=t: millrace(
                    args, "--dataset", d, "--threads", n, *m)
            table[f"paddle-{name}{t}"] = lambda n=name, k=t: peer(
                args, paddle, "paddle_bench.py", "--mode", n, "--threads", k, MKL_DEBUG_CPU_TYPE="5")
            table[f"paddle-default-{name}{t}"] = lambda n=name, k=t: peer(
                args, paddle, "paddle_bench.py", "--mode", n, "--threads", k)
        table[f"lr-queue{t}"] = lambda k=t: logistic_regression(args, k)
        table[f"lr-ftrl{t}"] = lambda k=t: lr_config(args, k)
        table[f"gemm{t}"] = lambda k=threads: gemm(args, k)
        table[f"load{t}"] = lambda k=t: load(args, k)
        table[f"paddle-load{t}"] = lambda k=t: paddle_load(args, paddle, k)
        table[f"torch{t}"] = lambda k=t: peer(args, torch, "torch_bench.py", "--embed", "single", "--threads", k)
    table["vw"] = lambda: vowpal_wabbit(args)
    table["torch-hogwild2"] = lambda: peer(args, torch, "torch_bench.py", "--embed", "single", "--hogwild", "2")
    return table


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--peers", required=True, help="folder of paddle_bench.py and torch_bench.py")
    p.add_argument("--trainer", default=f"{HERE}/../../build/release/bin/trainer")
    p.add_argument("--gemm_bench", default=f"{HERE}/../../build/release/bin/bench_gemm")
    p.add_argument("--parts", type=int, default=2)
    p.add_argument("--reps", type=int, default=3)
    p.add_argument("--systems", default="inmem1,paddle-inmem1,torch1")
    p.add_argument("--vw_text", help="train.vw of to_text.py")
    p.add_argument("--json", help="appends every run to this file")
    args = p.parse_args()
    args.data, args.peers = os.path.abspath(args.data), os.path.abspath(args.peers)
    if args.vw_text and not os.path.isfile(args.vw_text):
        p.error(f"--vw_text: {args.vw_text} is no file; to_text.py writes train.vw")
    table = systems(args)
    names = args.systems.split(",")
    unknown = [n for n in names if n not in table]
    if unknown:
        p.error(f"unknown systems {unknown}; known: {', '.join(sorted(table))}")
    rates = {n: [] for n in names}
    for _ in range(args.reps):
        for name in names:
            rate, report = table[name]()
            rates[name].append(rate)
            print(f"{name}: {rate:,.0f} examples/s", file=sys.stderr, flush=True)
            if args.json:
                with open(args.json, "a", encoding="utf-8") as f:
                    f.write(json.dumps({"system": name, "report": report}) + "\n")
    base = rates[names[0]]
    print(f"| system | examples/s: median [min-max], n = {args.reps} | {names[0]} is faster by |\n|---|---|---|")
    for name in names:
        r = rates[name]
        ratio = statistics.median(a / b for a, b in zip(base, r))
        print(f"| {name} | {statistics.median(r):,.0f} [{min(r):,.0f}-{max(r):,.0f}] | {ratio:.2f} |")


if __name__ == "__main__":
    main()
