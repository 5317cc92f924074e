#!/usr/bin/env python3
"""Disturbs real runs of the programs and looks at what they end with.

    run.py [--campaign=NAME,...] [--seconds=N | --cases=N] [--seed=N] [--jobs=N] [--bin=DIR] [--work=DIR]
    run.py --campaign=NAME --seed=N --case=N          one case again

Campaigns: signals (stops and kills, resumed), damage (files that a run or a model leaves), hostile (limits, full disks,
closed streams, names), malformed (jobs and programs), hosts (ranks on four hosts, which fail),
meaning (the same rows through every format and entry point, metrics beside exact ones). A case is drawn from
(campaign, seed, number) alone; moments of signals and of hosts are those that the machine makes of them. Every violation
is printed with the line that repeats it, and its folder is kept. A table closes the run; exit code 1: there was a violation.
"""

import argparse
import collections
import ctypes
import multiprocessing
import os
import queue
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback

import damage
import hostile
import hosts
import malformed
import meaning
import signals
from case import Case, Violation

CAMPAIGNS = {module.__name__: module.run_case for module in (signals, damage, hostile, malformed, hosts, meaning)}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

MOST_FOLDERS = 300
NOT_HERE = 77  # exit code: nothing could be run on this machine
PR_SET_PDEATHSIG = 1
Outcome = collections.namedtuple("Outcome", "campaign number kind text tally seconds")


def run_one(options, campaign, number, cache):
    """Runs a case and returns its Outcome; its folder goes unless it shows a violation."""
    started = time.monotonic()
    folder = os.path.join(options.work, "%s-%d" % (campaign, number))
    shutil.rmtree(folder, ignore_errors=True)
    case = Case(campaign, options.seed, number, options.bin, folder, cache, options.hang_seconds,
                options.sanitized, options.clock, options.brief)
    try:
        kind, text = "held", CAMPAIGNS[campaign](case)
    except Violation as violation:
        kind, text = "VIOLATION", str(violation)
    except Exception:  # pylint: disable=broad-except
        kind, text = "VIOLATION", "the campaign itself failed: " + traceback.format_exc()
    finally:
        case.end_processes()
    # A violation that comes again and again is not to fill the disk.
    if not options.keep and (kind == "held" or len(os.listdir(options.work)) > MOST_FOLDERS):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        with open(os.path.join(folder, "HISTORY"), "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(case.history) + "\n\n" + text + "\n")
    return Outcome(campaign, number, kind, text, dict(case.tally), time.monotonic() - started)


def work(options, tasks, outcomes):
    """A worker: takes cases until there are none, or until the time is over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the case's processes end with it
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    cache = tempfile.mkdtemp(prefix="cache-", dir=options.work)
    os.chmod(cache, 0o755)
    while True:
        with tasks.get_lock():
            number = tasks.value
            tasks.value += 1
        over = options.deadline is not None and time.monotonic() > options.deadline
        if over or (options.cases is not None and number >= options.cases * len(options.campaigns)):
            break
        campaign = options.campaigns[number % len(options.campaigns)]
        number = options.case if options.case is not None else number // len(options.campaigns)
        outcomes.put(run_one(options, campaign, number, cache))
    shutil.rmtree(cache, ignore_errors=True)


def say(options, outcome):
    print("VIOLATION in %s, case %d (%.1f s): %s" % (outcome.campaign, outcome.number, outcome.seconds, outcome.text))
    print("  again:  %s --bin=%s --campaign=%s --seed=%d --case=%d" %
          (shlex.quote(os.path.relpath(os.path.abspath(__file__))), shlex.quote(options.bin), outcome.campaign,
           options.seed, outcome.number))
    print("  folder: %s/%s-%d\n" % (options.work, outcome.campaign, outcome.number), flush=True)


def table(all_outcomes):
    """The counts by campaign: cases by what they ended with, and what was done to them."""
    lines = []
    for campaign in CAMPAIGNS:
        outcomes = [outcome for outcome in all_outcomes if outcome.campaign == campaign]
        if not outcomes:
            continue
        bad = sum(outcome.kind != "held" for outcome in outcomes)
        lines.append("%-68s %7d cases, %d violations, slowest %.1f s" %
                     (campaign, len(outcomes), bad, max(outcome.seconds for outcome in outcomes)))
        held = collections.Counter(outcome.text for outcome in outcomes if outcome.kind == "held")
        done = collections.Counter()
        for outcome in outcomes:
            done.update(outcome.tally)
        for text, count in sorted(held.items()):
            lines.append("  %-66s %7d" % (text, count))
        if bad:
            lines.append("  %-66s %7d" % ("VIOLATION", bad))
        for text, count in sorted(done.items()):
            lines.append("    %-64s %7d" % (text, count))
    return "\n".join(lines)


def violations(outcomes):
    return sum(outcome.kind != "held" for outcome in outcomes)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--campaign", default=",".join(CAMPAIGNS), help="names, with commas between; all by default")
    parser.add_argument("--seconds", type=float, help="start cases for so long; 60 when --cases is not given")
    parser.add_argument("--cases", type=int, help="so many cases of each campaign")
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--seed", type=int, default=None, help="what the cases are drawn from; by default the time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at a time; one a processor")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/release/bin"), help="folder of the programs")
    # No run of a campaign takes a tenth of it on an idle machine.
    parser.add_argument("--hang_seconds", type=float, default=180, help="without an end after so long, a program hangs")
    parser.add_argument("--clock", help="stepping_clock's library, by default that of the build beside --bin")
    parser.add_argument("--sanitized", action="store_true", help="the programs are built with a sanitizer")
    parser.add_argument("--brief", action="store_true", help="only what is over in seconds")
    parser.add_argument("--work", help="folder for the cases; by default a new one, removed when nothing was found")
    parser.add_argument("--keep", action="store_true", help="keep the folders of all cases")
    options = parser.parse_args(arguments)
    options.campaigns = options.campaign.split(",")
    unknown = [name for name in options.campaigns if name not in CAMPAIGNS]
    if unknown:
        parser.error("no campaign %s; there are %s" % (", ".join(unknown), ", ".join(CAMPAIGNS)))
    if not os.access(os.path.join(options.bin, "trainer"), os.X_OK):
        parser.error("--bin: no trainer in %s" % options.bin)
    options.bin = os.path.abspath(options.bin)
    clock = options.clock or os.path.join(options.bin, "../lib/libstepping_clock.so")
    options.clock = os.path.abspath(clock) if os.path.exists(clock) else None
    if options.case is not None:
        if len(options.campaigns) != 1 or options.seed is None:
            parser.error("--case wants one --campaign and its --seed")
        options.cases, options.jobs, options.keep = 1, 1, True
    if options.seconds is None and options.cases is None:
        options.seconds = 60
    options.deadline = None if options.seconds is None else time.monotonic() + options.seconds
    if options.seed is None:
        options.seed = int(time.time()) % 1000000
    options.is_own_folder = options.work is None
    return options


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    options = parse(sys.argv[1:])
    reason = hosts.missing(options) if "hosts" in options.campaigns else ""
    if reason:
        print("hosts are left out: " + reason)
        options.campaigns.remove("hosts")
        if not options.campaigns:
            sys.exit(NOT_HERE)
    options.work = os.path.abspath(options.work) if options.work else tempfile.mkdtemp(prefix="millrace_campaign_")
    os.makedirs(options.work, exist_ok=True)
    os.chmod(options.work, 0o755)  # cases of the hostile campaign run as somebody else
    signal.signal(signal.SIGTERM, interrupt)
    print("seed %d, %s, folder %s" % (options.seed, ", ".join(options.campaigns), options.work), flush=True)
    context = multiprocessing.get_context("fork")
    tasks = context.Value("l", 0)
    arrived = context.Queue()
    workers = [context.Process(target=work, args=(options, tasks, arrived)) for _ in range(max(1, options.jobs))]
    for worker in workers:
        worker.start()
    outcomes = []
    stopped = False
    lost = 0
    spoken = time.monotonic()
    try:
        while True:
            if time.monotonic() > spoken + 60:
                spoken = time.monotonic()
                print("%s: %d cases, %d violations" % (time.strftime("%H:%M:%S"), len(outcomes), violations(outcomes)),
                      flush=True)
            alive = any(worker.is_alive() for worker in workers)
            try:
                outcome = arrived.get(timeout=0.2)
            except queue.Empty:
                if alive:
                    continue
                break
            outcomes.append(outcome)
            if outcome.kind != "held":
                say(options, outcome)
    except KeyboardInterrupt:
        stopped = True
        for worker in workers:
            worker.terminate()
    for worker in workers:
        worker.join()
        lost += worker.exitcode != 0 and not stopped
    print(table(outcomes))
    bad = violations(outcomes) + lost
    if lost:
        print("%d workers of the campaign died" % lost)
    print("%d cases, %d violations, seed %d" % (len(outcomes), bad, options.seed))
    if options.is_own_folder and not bad and not options.keep:
        shutil.rmtree(options.work, ignore_errors=True)
    if not outcomes:
        print("no case ran")
    sys.exit(1 if bad or not outcomes else 130 if stopped else 0)


if __name__ == "__main__":
    main()
