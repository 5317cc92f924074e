"""Stops, hangups, kills and pauses at random moments of real runs, which are resumed until they are done.

What must hold: a SERIAL run ends with the bytes of one that nothing disturbed, model, metrics and evaluation; of any other
run every line was trained exactly as often as there are epochs; an upload is made for every pass; no process stays.
"""

import json
import math
import os
import signal
import time

import jobs
from case import Violation, content, difference, read

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PIPES = ("", "awk '{ print }'", "cat | cat", "while read -r line; do echo \"$line\"; done")


def run_case(case):
    kind = case.rng.choice((serial, serial, filtered, filtered, counting, counting, counting, days, self_feeding,
                            binary, pipeline))
    return kind(case)


def checkpoints(case, every_steps=0):
    return "checkpoint { every_steps: %d keep: %d } output { tensorboard: %s }\n" % (
        every_steps or case.rng.choice((3, 7, 10, 25)), case.rng.choice((1, 2, 5)), case.rng.choice(("true", "false", "false")))


def data_options(case):
    """How the files are packed and piped: (packed, fields of data_desc)."""
    pipe = case.rng.choice(PIPES)
    fields = "thread_num: %d" % case.rng.choice((1, 1, 2, 3))
    if pipe:
        fields += " pipe_command: %s" % jobs.text_string(pipe)
    return case.rng.random() < 0.3, fields


def dataset(case):
    name = case.rng.choice(("QueueDataset", "InMemoryDataset", "InMemoryDataset"))
    if name == "QueueDataset":
        return "dataset { class_name: \"QueueDataset\" }\n"
    return "dataset { class_name: \"InMemoryDataset\" local_shuffle: %s preload: %s }\n" % (
        case.rng.choice(("true", "false")), case.rng.choice(("true", "false")))


def sizes(case, multiple):
    """Lines of each file; their sum is a multiple of the batch size, so that every batch is full."""
    total = multiple * case.rng.randrange(max(1, 1000 // multiple), 3000 // multiple)
    cuts = sorted(case.rng.randrange(total + 1) for _ in range(case.rng.randrange(4)))
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, total])]


def evaluation(case, steps=None):
    """With early stopping the best model is saved; not where the last one's counts are wanted, of so many steps."""
    if case.rng.random() < 0.5:
        return ""
    path = case.path("held_out")
    jobs.write_file(path, "".join(jobs.lines_of_log(100000, 400)))
    early = "" if steps else case.rng.choice(("", "", "early_stopping { metric: \"loss\" patience: 1000 }"))
    every = case.rng.choice((0, steps // 2, steps // 9) if steps else (0, 9, 20))
    return "eval { filelist: %s every_steps: %d %s }\n" % (jobs.text_string(path), every, early)


# The jobs.


def serial(case):
    packed, data = data_options(case)
    bad_every = case.rng.choice((0, 0, 0, 17, 200))
    if bad_every:
        data += " bad_lines { action: QUARANTINE max_lines: 1000000 max_fraction: 1 }"
    files = jobs.write_log(case.path("data"), sizes(case, 1), packed, bad_every=bad_every)
    extra = "update_mode: SERIAL epochs: %d\n" % case.rng.choice((1, 2)) + checkpoints(case) + dataset(case)
    job = case.write("job.prototxt", jobs.deep_job(files, extra + evaluation(case), data=data))
    return same_bytes(case, job, "SERIAL: the bytes of an undisturbed run")


def filtered(case):
    """Rows are left out by their label, for evaluations, as bad lines and by a mask, alone or together."""
    def some(text):
        return text if case.rng.random() < 0.6 else ""

    bad = some(" bad_lines { action: QUARANTINE max_lines: 1000000 max_fraction: 1 }")
    files = jobs.write_rows(case.path("data"), sizes(case, 1), bad_every=case.rng.choice((17, 200)) if bad else 0)
    sets = some("set { name: 'share' share: 0.%d } " % case.rng.randrange(1, 6)) + \
        some("set { name: 'since' since { column: 'day' at: '2026-11-2%d' } } " % case.rng.randrange(9))
    rule = case.rng.choice(("update_mode: SERIAL", "dist { update: SYNC micro_batches: %d }" % case.rng.choice((1, 2, 4))))
    dataset_class = case.rng.choice(("QueueDataset", "QueueDataset", "InMemoryDataset"))
    extra = "%s epochs: %d\ndataset { class_name: \"%s\" }\n" % (rule, case.rng.choice((1, 2)), dataset_class)
    extra += checkpoints(case) + ("eval { %s every_steps: %d }\n" % (sets, case.rng.choice((0, 9, 20))) if sets else "")
    thinned = some("downsample { label: 'label' rate: 0.%d }" % case.rng.randrange(1, 8))
    data = "thread_num: %d%s" % (case.rng.choice((1, 1, 2, 3)), bad)
    job = case.write("job.prototxt", jobs.filtered_job(files, extra, data, thinned, some("mask: 'seen'")))
    return same_bytes(case, job, "rows left out, SERIAL or SYNC: the bytes of an undisturbed run")


def binary(case):
    files = jobs.write_log(case.path("data"), sizes(case, 1))
    extra = "update_mode: SERIAL epochs: 2\n" + checkpoints(case)
    text = case.write("text.prototxt", jobs.deep_job(files, extra))
    case.succeed("inspect", "convert", "--trainer_desc=" + text, "--output_dir=" + case.path("binary"))
    return same_bytes(case, case.path("binary", "job.prototxt"), "binary files: the bytes of an undisturbed run")


def pipeline(case):
    files = jobs.write_log(case.path("data"), sizes(case, 1))
    extra = "class_name: \"PipelineTrainer\" device_worker_name: \"SectionWorker\" epochs: 2\n"
    extra += "section_param { num_microbatches: %d section_config { section_out_var_names: \"e\" } " % case.rng.choice(
        (1, 2, 4)) + "section_config { concurrency: %d } }\n" % case.rng.choice((1, 2))
    job = case.write("job.prototxt", jobs.deep_job(files, extra + checkpoints(case)))
    return same_bytes(case, job, "pipeline: the bytes of an undisturbed run")


def same_bytes(case, job, outcome):
    started = time.monotonic()
    case.succeed("trainer", "--trainer_desc=" + job, "--output_dir=" + case.path("calm"))
    disturb_until_done(case, job, case.path("out"), time.monotonic() - started)
    for part in ("model", "models"):
        differs = difference(content(case.path("calm", part)), content(case.path("out", part)))
        if differs:
            raise Violation("%s of the disturbed run has other bytes: %s" % (part, differs))
    same_metrics(case)
    calm, out = (sorted(read(case.path(name, "bad_lines.txt")).splitlines()) for name in ("calm", "out"))
    if calm != out:
        raise Violation("the quarantine has %d lines, and %d undisturbed" % (len(out), len(calm)))
    calm, out = jobs.report(case.path("calm")), jobs.report(case.path("out"))
    for report in (calm, out):
        # A model stands at the end of one epoch and at the begin of the next: called again, a finished run says the latter.
        report.get("eval", {}).pop("epoch", None)
        report.get("eval", {}).pop("quarantine_path", None)  # of another folder
    for key in ("examples", "batches", "epochs", "metrics", "eval"):
        if not alike(without_times(calm.get(key)), without_times(out.get(key))):
            raise Violation("run.json: %s is %s, and %s undisturbed" % (key, out.get(key), calm.get(key)))
    return outcome


def same_metrics(case):
    """A finished run that is called again evaluates once more, and says the same once more."""
    calm, out = (read(case.path(name, "metrics.jsonl")).splitlines() for name in ("calm", "out"))
    calm, out = ([json.loads(line) for line in without_repetition(lines)] for lines in (calm, out))
    if not alike(calm, out):
        raise Violation("metrics.jsonl differs from that of an undisturbed run")


def without_repetition(lines):
    return list(dict.fromkeys(lines))


def alike(one, other):
    """Equal, but for the last digits of sums: those of a pipeline's threads are added up in parts, elsewhere cut by a stop."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12) or (one != one and other != other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


def without_times(value):
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if "second" not in key}


def counting(case):
    batch_size = case.rng.choice((1, 1, 4, 16))
    packed, data = data_options(case)
    lines = sizes(case, batch_size)
    files = jobs.write_log(case.path("data"), lines, packed)
    epochs = case.rng.choice((1, 1, 2, 3))
    extra = "thread_num: %d update_mode: %s epochs: %d\n" % (case.rng.choice((2, 2, 3, 4)),
                                                           case.rng.choice(("HOGWILD", "ROW_LOCK")), epochs)
    steps = sum(lines) * epochs // batch_size
    extra += checkpoints(case, max(3, steps // case.rng.choice((2, 5, 20, 60)))) + dataset(case) + evaluation(case, steps)
    job = case.write("job.prototxt", jobs.counting_job(files, extra, batch_size, data))
    disturb_until_done(case, job, case.path("out"), 0.1 + sum(lines) * epochs / batch_size / 20000)
    every_line(case, files, lines, epochs)
    return "several workers: every line exactly once an epoch"


def every_line(case, files, lines, epochs):
    """The oracle: the table has counted every line."""
    times = []
    for file in files:
        done = case.succeed("predictor", "--model_dir=" + case.path("out", "model"), "--input=" + file,
                            "--pipe_command=cat")
        times += [jobs.trained_times(float(score)) for score in done.out.split()]
    if len(times) != sum(lines):
        raise Violation("%d scores for %d lines" % (len(times), sum(lines)))
    wrong = [i for i, n in enumerate(times) if n != epochs]
    if wrong:
        raise Violation("%d of %d lines were not trained %d times, the first is uid %d: %s times" %
                        (len(wrong), len(times), epochs, wrong[0] + 1, times[wrong[0]]))
    examples = jobs.report(case.path("out"))["examples"]
    if examples != sum(lines) * epochs:
        raise Violation("run.json says %d examples; the table counted %d" % (examples, sum(lines) * epochs))


def days(case):
    packed, data = data_options(case)
    lines = [case.rng.randrange(200, 900) for _ in range(3)]
    files = jobs.write_log(case.path("data"), lines, packed)
    # It takes its time, says on which bytes it was run, and is to be run to its end for every pass that is saved.
    command = case.write("upload.sh", "sleep 0.0%d; cksum < $1/parameters > $0.part-$2; echo \"$2 $(cat $0.part-$2)\" "
                         ">> $0.log\n" % case.rng.randrange(1, 9))
    interval = case.rng.choice((1, 1, 2))
    passes = "".join("pass { name: \"d%d\" filelist: %s }\n" % (i, jobs.text_string(file)) for i, file in enumerate(files))
    extra = "update_mode: SERIAL\n" + checkpoints(case) + dataset(case) + evaluation(case) + \
        "incremental {\n%ssave_interval: %d save_command: %s }\n" % (
            passes, interval, jobs.text_string("sh %s $1 $2" % command))
    job = case.write("job.prototxt", jobs.deep_job([], extra, data=data))
    log = command + ".log"
    started = time.monotonic()
    case.succeed("trainer", "--trainer_desc=" + job, "--output_dir=" + case.path("calm"))
    duration = time.monotonic() - started
    expected = set(read(log).splitlines())
    os.remove(log)
    disturb_until_done(case, job, case.path("out"), duration)
    made = set(read(log).splitlines())
    if made != expected:
        raise Violation("save_command was run to its end for %s; undisturbed for %s" %
                        (sorted(made) or "nothing", sorted(expected)))
    for part in ("model", "models"):
        differs = difference(content(case.path("calm", part)), content(case.path("out", part)))
        if differs:
            raise Violation("%s of the disturbed run has other bytes: %s" % (part, differs))
    same_metrics(case)
    return "days: every upload made, the bytes of an undisturbed run"


def self_feeding(case):
    name = case.rng.choice(("has_next", "multi_pass"))
    job = jobs.self_feeding_job(ROOT, case.path("data"), name, case.rng.randrange(300, 2000), checkpoints(case),
                                [("print_period: 32", "print_period: 4")])
    started = time.monotonic()
    save = ("--set", "program.save_dir=%s" % jobs.text_string(case.path("calm_saved")))
    case.succeed("trainer", "--trainer_desc=" + job, "--output_dir=" + case.path("calm"), *save)
    duration = time.monotonic() - started
    save = ("--set", "program.save_dir=%s" % jobs.text_string(case.path("saved")))
    disturb_until_done(case, job, case.path("out"), duration, save)
    differs = difference(content(case.path("calm_saved")), content(case.path("saved")))
    if differs:
        raise Violation("the parameters have other bytes: %s" % differs)
    same_metrics(case)
    return "fed by itself: the bytes of an undisturbed run"


# The disturbances.


def disturb_until_done(case, job, out, duration, more=()):
    """Runs the job with --resume=auto, disturbed some times, then to its end."""
    flags = ("--trainer_desc=" + job, "--output_dir=" + out, "--resume=auto", *more)
    for _ in range(case.rng.randrange(1, 6)):
        wait = case.rng.choice(MOMENTS)
        how = case.rng.choice(DISTURBANCES)
        running = case.start("trainer", *flags)
        wait(case, running, out, duration)
        how(case, running)
        done = running.wait()
        if done.code == 2 or (done.code == 3 and how is not end_a_child and "save_command" not in done.err):
            running.fail("disturbed by signals alone, it ended with %d" % done.code, done)
        case.expect_no_process("a run that ended with %d" % done.code)
    case.succeed("trainer", *flags)
    case.expect_no_process("the last run")
    for base, folders, files in os.walk(out):
        for name in folders + files:
            if "writing" in name:
                raise Violation("the run is done, and left %s" % os.path.join(base, name))


def until(running, condition, seconds=10):
    end = time.monotonic() + seconds
    while running.is_alive() and time.monotonic() < end and not condition():
        time.sleep(0.0005)


def at_any_time(case, running, _, duration):
    end = time.monotonic() + case.rng.uniform(0, duration)
    until(running, lambda: time.monotonic() > end)


def at_the_start(case, running, _, __):
    end = time.monotonic() + case.rng.uniform(0, 0.08)
    until(running, lambda: time.monotonic() > end)


def listing(folder):
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def at_a_checkpoint(case, running, out, _):
    """While one is written, or soon after."""
    folder = os.path.join(out, "checkpoints")
    before = listing(folder)
    for _ in range(case.rng.randrange(1, 4)):
        until(running, lambda: listing(folder) - before)  # pylint: disable=cell-var-from-loop
        before = listing(folder)
    time.sleep(case.rng.choice((0, case.rng.uniform(0, 0.005))))


def at_the_model(case, running, out, _):
    """While the model is put in its place."""
    before = listing(out)
    until(running, lambda: any(name.startswith("model") for name in listing(out) - before))
    time.sleep(case.rng.choice((0, case.rng.uniform(0, 0.003))))


def at_a_print(case, running, _, __):
    at = case.rng.randrange(1, 3000)
    until(running, lambda: running.printed() >= at)


MOMENTS = (at_any_time, at_any_time, at_any_time, at_the_start, at_a_checkpoint, at_a_checkpoint, at_the_model, at_a_print)


def once(number):
    return lambda case, running: running.signal(number)


def end_by_group(case, running):
    """As a terminal does it: to the whole foreground group."""
    running.signal(case.rng.choice((signal.SIGINT, signal.SIGHUP)), to_group=True)


def asked_and_ended(case, running):
    """Asked, and soon after asked again or killed."""
    running.signal(case.rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)))
    time.sleep(case.rng.choice((0, 0.001, 0.01, 0.05)))
    running.signal(case.rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)))


def stopped_for_a_while(case, running):
    running.signal(signal.SIGSTOP)
    time.sleep(case.rng.choice((0.01, 0.1, 0.3)))
    running.signal(case.rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGCONT)))
    running.signal(signal.SIGCONT)


def end_a_child(case, running):
    """Kills a process that the trainer started; the run fails with its name, or did not need it any more."""
    children = [pid for pid in case.processes() if pid != running.process.pid]
    if not children:
        running.signal(signal.SIGKILL)
        return
    case.tally["children killed"] += 1
    try:
        os.kill(case.rng.choice(children), signal.SIGKILL)
    except ProcessLookupError:
        pass


DISTURBANCES = (once(signal.SIGINT), once(signal.SIGTERM), once(signal.SIGHUP), once(signal.SIGKILL),
                once(signal.SIGKILL), once(signal.SIGKILL), end_by_group, asked_and_ended, asked_and_ended,
                stopped_for_a_while, end_a_child)
